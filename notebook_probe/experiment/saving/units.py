"""The units that were saved, as the record and the lists of checkpoints tell them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from notebook_probe.errors import RecordFormatError
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.opened import OpenedRun, open_run
from notebook_probe.record.format.notes import UNIT
from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.checkpoints.store import CheckpointStore

__all__ = ["SECONDS", "SavedUnit", "checkpoints", "newest", "read_config", "read_units", "run_id"]

SECONDS = "unit_seconds"
"""Name of the seconds since the unit before, recorded with the step of each saved unit."""

VALID = "valid_"


@dataclass(frozen=True, slots=True)
class SavedUnit:
    """One saved unit.

    Attributes
    ----------
    id : str
        ``<id of the run>:<step>``.
    exp_id : str
    step : int
        Updates completed.
    saved_filters : bool
        There is a checkpoint of it.
    checkpoint : str
        Path of the checkpoint; empty without one.
    saved_at : float
        Time of the checkpoint, in seconds since 1970 UTC; 0 without one.
    duration : float
        Seconds since the unit before; NaN where the record does not know.
    validation : dict
        Results by ``valid_<name>_<key>``; numbers are float32.
    """

    id: str
    exp_id: str
    step: int
    saved_filters: bool = False
    checkpoint: str = ""
    saved_at: float = 0.0
    duration: float = float("nan")
    validation: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return the fields by name for queries, together with the results."""
        own = asdict(self)
        return {**own, **own.pop("validation")}


def run_id(run: Run | OpenedRun | None, place: ExperimentFolder) -> str:
    """Return the id of the units' run; without a record, the name of the experiment."""
    return str(place.exp_id if run is None else run.snapshot().attrs["run_id"])


def read_units(place: ExperimentFolder) -> list[SavedUnit]:
    """Read all saved units of an experiment, by step, including those without a record.

    Raises
    ------
    RecordFormatError, CheckpointError
        The file is no record, or no list of checkpoints.

    Examples
    --------
    >>> read_units(ExperimentFolder(Path("experiments"), exp_id="first"))[-1].step  # doctest: +SKIP
    3000
    """
    run = _opened(place)
    seconds, results = ({}, {}) if run is None else (_seconds(run), _results(run))
    whose = run_id(run, place)
    kept = {one.step: one for one in checkpoints(place)}  # of a step the one saved last
    return [
        SavedUnit(
            id=f"{whose}:{step}",
            exp_id=place.exp_id or "",
            step=step,
            saved_filters=step in kept,
            checkpoint=kept[step].path if step in kept else "",
            saved_at=kept[step].saved_at if step in kept else 0.0,
            duration=seconds.get(step, float("nan")),
            validation=results.get(step, {}),
        )
        for step in sorted({*seconds, *kept})
    ]


def newest(place: ExperimentFolder) -> Checkpoint | None:
    """Return the last saved checkpoint, permanent or recent."""
    saved = checkpoints(place)
    return saved[-1] if saved else None


def read_config(place: ExperimentFolder) -> dict[str, Any]:
    """Read the parameters of the experiment; empty without a record."""
    run = _opened(place)
    return {} if run is None else run.config


def checkpoints(place: ExperimentFolder) -> list[Checkpoint]:
    """All that are kept, by the time saved; in one folder the order is known without a clock."""
    lists = [CheckpointStore(one).saved() for one in (place.checkpoints, place.recent)]
    found: list[Checkpoint] = []
    while any(lists):
        earliest = min((one for one in lists if one), key=lambda one: one[0].saved_at)
        found.append(earliest.pop(0))
    return found


def _opened(place: ExperimentFolder) -> OpenedRun | None:
    """Open the record; of several processes, the record of the first, which saves for all."""
    if not place.record.exists():
        return None
    try:
        return open_run(next(iter(rank_folders(place.record).values()), place.record))
    except RecordFormatError:
        if any(place.record.glob("zarr.json")):
            raise
        return None  # its writer was killed before there was anything


def _numbers(run: OpenedRun, name: str) -> dict[int, float]:
    if name not in run.data:
        return {}
    series = run.series("", name)
    return dict(zip(series.step.values.tolist(), series.values.tolist(), strict=True))


def _seconds(run: OpenedRun) -> dict[int, float]:
    """Return the seconds since the unit before, by unit, from its step or an event."""
    # The row of step k - 1 belongs to the state after k updates.
    trained = {step + 1: value for step, value in _numbers(run, SECONDS).items()}
    others = {told["unit"]: told[SECONDS] for told in _unit_details(run) if SECONDS in told}
    return {**trained, **others}


def _results(run: OpenedRun) -> dict[int, dict[str, Any]]:
    """Return the results of validations, by unit."""
    found: dict[int, dict[str, Any]] = {}
    for name in (str(name) for name in run.data if str(name).startswith(VALID)):
        for step, value in _numbers(run, name).items():
            found.setdefault(step, {})[name] = value
    for told in _unit_details(run):
        others = {
            name: one for name, one in told.get("results", {}).items() if name.startswith(VALID)
        }
        if others:
            found.setdefault(told["unit"], {}).update(others)
    return found


def _unit_details(run: OpenedRun) -> Iterator[dict[str, Any]]:
    """Return the details of the saved units of a run."""
    return (json.loads(event.detail) for event in run.events if event.kind == UNIT)
