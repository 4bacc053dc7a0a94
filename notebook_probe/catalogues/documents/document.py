"""The row of one record, from its commit record alone where its writer kept a summary."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from notebook_probe.catalogues.documents.best import is_better
from notebook_probe.errors import ProbeError, RecordFormatError, RecordWarning
from notebook_probe.lineage.progress import begun_ms, state_of
from notebook_probe.lineage.row import EVAL, kept_of
from notebook_probe.old_runs.finding import find_old_run
from notebook_probe.old_runs.place import OldPlace
from notebook_probe.old_runs.record import attrs_of, is_open, summary_of
from notebook_probe.record.format.loss_names import BACKWARD_LOSS, loss_name, names_evaluation
from notebook_probe.record.format.schema import EVALUATION, FORMAT_VERSION, UNWRITTEN_OF
from notebook_probe.record.format.summary import Scalar, Summary
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.read.summarised import summarised
from notebook_probe.record.store.location import ROOT_KEY, Location, local_path, read_key
from notebook_probe.record.store.opener import opener
from notebook_probe.record.store.writing import has_writer

__all__ = ["Document", "rank_of", "read_document"]

MOST_BYTES = 1 << 28
RANK = re.compile(r"(.+)[/\\]rank_(\d{5})", re.DOTALL)
LONGEST_NAME = 1000
"""Characters of a title that are believed."""
NOT_STREAMS = ("pyramid/", "events/", "modules/")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """Known facts of a run, and whether they can change while the record does not."""

    row: Row

    @property
    def may_end(self) -> bool:
        """True if its writer may still die, which no file would show."""
        return self.row["state"] == "running"


def rank_of(place: str) -> tuple[str, int] | None:
    """Return a job's location and the rank stored here; None for a separate record.

    Examples
    --------
    >>> rank_of("/runs/job.zarr/rank_00003"), rank_of("/runs/one.zarr")
    (('/runs/job.zarr', 3), None)
    """
    if place[-10:-5] != "rank_":  # asked of thousands
        return None
    found = RANK.fullmatch(place)
    return None if found is None else (found[1], int(found[2]))


def read_document(location: Location) -> Document:
    """Read the record at a location.

    Raises
    ------
    RecordFormatError
        There is none, or it cannot be read, or it is the rest that another could not take.
    OSError
        The disk does not answer.
    """
    folder = local_path(location)
    old = None if folder is None or (folder / ROOT_KEY).is_file() else find_old_run(folder)
    if old is not None:
        return _of_old_run(location, old)
    root = _root(location)
    attrs = root["attributes"]
    if UNWRITTEN_OF in attrs:
        raise RecordFormatError(f"{location} has rows that another record could not take")
    summary = Summary.read(attrs)
    if summary is None or summary.n_rows != _n_rows(root):
        summary = _slowly(location)
    finished = attrs.get("state") == "closed"
    state = state_of(finished, not finished and has_writer(location))
    return Document(_row(location, attrs, summary, state))


def _of_old_run(location: Location, place: OldPlace) -> Document:
    """Read the facts of another tool's run, without making its record."""
    run, is_growing = place.read(), place.is_growing()
    attrs = attrs_of(run, str(place.path))
    state = state_of(not is_open(run, is_growing), is_growing)
    return Document(_row(location, attrs, summary_of(run, place.n_bytes), state))


def _root(location: Location) -> dict[str, Any]:
    """Return the commit record."""
    folder = local_path(location)
    try:
        if folder is not None and (folder / ROOT_KEY).is_file():
            with (folder / ROOT_KEY).open("rb") as file:
                text: bytes | None = file.read(MOST_BYTES)
        else:
            text = read_key(opener(location)(), ROOT_KEY)
        found = json.loads(text or b"")
        version = found["attributes"]["format_version"]
        nodes = found["consolidated_metadata"]["metadata"]
    except (ProbeError, OSError):
        raise
    except KeyError as error:  # of another group of zarr, as one inside of a record
        raise RecordFormatError(f"{location} is not a record: it has no {error.args[0]}") from error
    except Exception as error:  # damaged, or whatever the library of a store raises
        raise RecordFormatError(f"{location} is not a record: {error!r}"[:500]) from error
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION or type(nodes) is not dict:
        raise RecordFormatError(f"{location} is no record of format 1 to {FORMAT_VERSION}")
    return dict(found)


def _n_rows(root: Mapping[str, Any]) -> int:
    """Rows of all streams, by the shapes of their steps."""
    try:
        return sum(
            node["shape"][0]
            for path, node in root["consolidated_metadata"]["metadata"].items()
            if path.endswith("/step") and not path.startswith(NOT_STREAMS)
        )
    except (TypeError, KeyError, IndexError):
        return -1


def _slowly(location: Location) -> Summary:
    """Compute the summary from the rows, if the record has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)  # of parts; who opens it is warned
        return summarised(OpenedRecord(location))


def _row(location: Location, attrs: Row, summary: Summary, state: str) -> dict[str, Any]:
    folder = local_path(location)
    begun = begun_ms(attrs)
    is_timed = begun and summary.updated_ms
    place = str(location if folder is None else folder)
    own = rank_of(place)
    of_alerts = ((f"alerts.{rule}", n) for rule, n in summary.alerts.items() if rule)
    return {
        "run": place,
        "run_id": str(attrs.get("run_id", "")),
        "name": str(attrs.get("title", folder.stem if folder else location))[:LONGEST_NAME],
        "state": state,
        **({} if own is None else {"rank": own[1]}),
        "steps": summary.steps,
        "duration_s": (summary.updated_ms - begun) / 1000 if is_timed else None,
        "alerts": sum(summary.alerts.values()),
        **dict(of_alerts),
        "checkpoints": summary.n_checkpoints,
        "size_bytes": summary.size_bytes,
        "updated": _date(summary.updated_ms) if summary.updated_ms else None,
        **_loss(summary.scalars),
        **dict(_numbers(_own_scalars(summary.scalars))),
        **dict(_numbers({_of_state(name): one for name, one in summary.states.items()})),
        **{f"{EVAL}.{x.removeprefix(EVALUATION)}": one.last for x, one in summary.states.items()},
        **kept_of(attrs),
    }


def _loss(scalars: Mapping[str, Scalar]) -> dict[str, float | None]:
    """Return the loss under the names that the lineage of a run uses."""
    loss = scalars.get(loss_name(scalars))
    if loss is None:
        return {}
    return {"loss.first": loss.first, "loss.last": loss.last, "loss.best": _known(loss.low)}


def _own_scalars(scalars: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the scalars without `backward_loss` if the loop logs a loss."""
    twice = set() if loss_name(scalars) == BACKWARD_LOSS else {BACKWARD_LOSS}
    return {name: one for name, one in scalars.items() if name not in twice}


def _numbers(scalars: Mapping[str, Scalar]) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers, the most wanted first: a table shows the first of equal columns."""
    for name, one in scalars.items():
        better = is_better(name)
        if better:
            yield f"best.{name}", _known(one.low if better == "min" else one.high)
        yield f"last.{name}", one.last
        yield f"min.{name}", _known(one.low)
        yield f"max.{name}", _known(one.high)
        yield f"first.{name}", one.first


def _of_state(name: str) -> str:
    """Return the name of an evaluation, distinct from a number of the steps."""
    return name if names_evaluation(name) else f"{EVALUATION}{name}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _date(time_ms: int) -> str | None:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
