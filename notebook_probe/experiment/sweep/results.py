"""The outcomes of a sweep as a table, a row for each configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from notebook_probe.errors import ProbeError
from notebook_probe.experiment.sweep.configuration import Configuration
from notebook_probe.experiment.sweep.outcome import NONFINITE, Outcome, read_outcome
from notebook_probe.lineage.row import row_of
from notebook_probe.opened import Lineage, open_run

__all__ = ["SweepResults", "results_of"]

WAITING = "waiting"


class SweepResults(Lineage):
    """Table of runs, with the chosen values and the outcome of each.

    Attributes
    ----------
    errors : dict of str to str
        Traceback of each configuration that failed, by its name.
    """

    @property
    def errors(self) -> dict[str, str]:
        failed = ((str(row["name"]), row.get("traceback")) for row in self)
        return {name: str(told) for name, told in failed if told}

    def shown(self) -> list[str]:
        """Return the columns, without tracebacks."""
        return [one for one in super().shown() if one != "traceback"]

    def _hidden(self) -> list[tuple[str, Any]]:
        return [one for one in super()._hidden() if one[0] != "traceback"]


def results_of(configurations: Iterable[Configuration], folder: Path) -> SweepResults:
    """Return the outcomes so far."""
    return SweepResults.of(_row(one, folder / one.id) for one in configurations)


def _row(configuration: Configuration, folder: Path) -> dict[str, Any]:
    outcome = read_outcome(folder)
    places = [*_records(folder, outcome)]
    recorded = _recorded(places[0]) if places else {}
    told = outcome or Outcome(WAITING)
    chosen = {f"config.{path}": value for path, value in configuration.chosen.items()}
    return {
        "run": places[0] if places else str(folder),
        **recorded,
        "name": configuration.name,
        "state": told.state,
        "sweep_id": configuration.id,
        **{path: getattr(value, "__qualname__", value) for path, value in chosen.items()},
        **{f"result.{name}": _number(value) for name, value in told.result.items()},
        "duration_s": told.duration_s if outcome else None,
        "error": told.error or None,
        "traceback": told.traceback or told.error or None,
    }


def _records(folder: Path, outcome: Outcome | None) -> Iterator[str]:
    """Yield the record that the function returned, or the records in its folder."""
    if outcome is not None and outcome.record:
        yield outcome.record
    yield from (str(one) for one in sorted(folder.rglob("*.zarr")))


def _recorded(place: str) -> dict[str, Any]:
    try:
        return row_of(open_run(place))
    except (ProbeError, OSError):  # the outcome has its state and its error
        return {}


def _number(value: Any) -> Any:
    # JSON has no NaN, so that outcomes store it as text.
    return float(value) if value in NONFINITE else value
