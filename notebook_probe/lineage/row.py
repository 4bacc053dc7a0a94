"""One run as one row of its record's facts, with dotted names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from notebook_probe.lineage.progress import duration_s, is_of_states, loss_of, n_steps, state_of
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.notes import (
    ALERT,
    ANNOTATIONS,
    CONFIG,
    LINEAGE,
    flattened,
    read_notes,
)
from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["EVAL", "Readable", "kept_of", "row_of"]

EVAL = "eval"
METRICS = "metrics"
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""Floats that lineage stores as text, as JSON lacks them."""
NEWEST = 64
"""Maximum rows of evaluations that are read; several names may be about different states."""


class Readable(RunSource, Protocol):
    """A run or an opened record, with whether it is being written."""

    @property
    def is_written(self) -> bool: ...


def row_of(run: Readable) -> dict[str, Any]:
    """Return a row of facts about a run as a whole; None for unknown ones.

    Parameters
    ----------
    run : Readable
        A run or an opened record, with a collected lineage or without.

    Returns
    -------
    dict
        ``run`` (where it is), ``name``, ``state``, ``steps``, ``duration_s``, ``alerts``,
        ``loss.first``, ``loss.last``, ``loss.best``, ``eval.…``; then ``config.…``, ``custom.…``,
        ``train.…``, ``annotations.…``, ``device.…``, ``git.…``, ``packages.…`` and ``created``.
    """
    attrs = run.snapshot().attrs
    loss = loss_of(run)
    return {
        "run": run.location,
        "name": run.name,
        "state": state_of(run.finished, run.is_written),
        "steps": n_steps(run),
        "duration_s": _known(duration_s(run, attrs)),
        "alerts": sum(event.kind == ALERT for event in run.events),
        **{f"loss.{name}": value for name, value in loss._asdict().items() if run.streams},
        **dict(_evaluated(run)),
        **kept_of(attrs),
    }


def kept_of(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes among a root's attributes, as part of a row."""
    lineage = read_notes(attrs, LINEAGE)
    parts = {name: part for name, part in lineage.items() if isinstance(part, Mapping)}
    evaluation = dict(parts.pop(EVAL, {}))
    metrics = evaluation.pop(METRICS, None)
    known = _below(EVAL, metrics) if isinstance(metrics, Mapping) else {}
    return {
        **known,
        **_below(CONFIG, read_notes(attrs, CONFIG)),
        **_below("custom", parts.pop("custom", {})),
        **_below("train", parts.pop("train", {})),
        **{f"{EVAL}_{key}": value for key, value in evaluation.items()},
        **_below(ANNOTATIONS, read_notes(attrs, ANNOTATIONS)),
        **{key: one for name, part in parts.items() for key, one in _below(name, part).items()},
        **_below("git", read_notes(attrs, "git")),
        **_below("packages", read_notes(attrs, "packages")),
        "created": attrs.get("created"),
    }


def _below(name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}.{key}": _number(value) for key, value in flattened(part) if value != {}}


def _evaluated(run: Readable) -> Iterator[tuple[str, Any]]:
    """Yield the last value of every scalar logged about states."""
    for path, stream in run.streams.items():
        if not is_of_states(path) or ROOT not in stream.modules:
            continue
        start = max(0, stream.n_rows - NEWEST)
        for variable in filter(is_of_loop, stream.variables):
            values = stream.values(variable.name, start, modules=[ROOT])[:, 0]
            there = values[measured(values)]
            if len(there):
                yield f"{EVAL}.{variable.name.removeprefix(EVALUATION)}", float(there[-1])


def _number(value: Any) -> Any:
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
