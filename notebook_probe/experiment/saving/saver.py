"""Saving the units of one model's training: numbers, results, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from notebook_probe.errors import RecordWriteError
from notebook_probe.experiment.params.sections import SaveParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving.due import DueContents, due
from notebook_probe.experiment.saving.results import Results, read_results
from notebook_probe.experiment.saving.units import SECONDS, run_id
from notebook_probe.record.format.notes import UNIT
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.keeping import Keep
from notebook_probe.train.checkpoints.ranks import own_rank
from notebook_probe.train.loop.loop import Loop

__all__ = ["Saver"]


class Saver:
    """Save the units that are due; called for each unit.

    A saved unit is a number in the record at its step, the seconds since the previous one, or an
    event outside of any step: at state 0, and where training ended. Where a checkpoint or a
    validation is saved, all that was recorded before is on the disk first, so that no restart
    misses a row; other units are written by the record's own thread.

    Parameters
    ----------
    params : SaveParams
        With ``do_save=False`` nothing is written.
    place : ExperimentFolder

    Attributes
    ----------
    record_ids : list of str
        Ids of the saved units, in order.
    """

    def __init__(self, params: SaveParams, place: ExperimentFolder) -> None:
        self._params, self._place = params, place
        self.record_ids: list[str] = []
        self._run_id = ""
        self._saved, self._since = 0, time.perf_counter()
        self._is_validated = False

    def begin(self, loop: Loop, *, was_loaded: bool = False) -> None:
        """Training begins: see that checkpoints can be written, and save state 0 where wanted.

        Raises
        ------
        CheckpointError
            They cannot be.
        """
        self._saved, self._since = loop.n_updates, time.perf_counter()
        self._run_id = run_id(_open(loop), self._place)
        if not self._params.do_save:
            return
        for folder in self._folders:
            if own_rank()[0] == 0:
                loop.kept.store(folder).begin()
        if loop.n_updates == 0 and self._params.save_initial_filters and not was_loaded:
            self._tell(loop)
            self._save(loop, DueContents(record=True, permanent=True))

    def unit(self, loop: Loop, metrics: Mapping[str, Any]) -> None:
        """Save a complete unit if it is due; called last, as saving closes its step.

        Raises
        ------
        CheckpointError
            A checkpoint could not be written, this one or, in the background, the previous one.
        """
        wanted = due(self._params, loop.n_updates)
        if wanted.record and self._params.do_save:
            seconds, run = self._next(loop), _open(loop)
            if run is not None:
                run.log({SECONDS: seconds})
            self._save(loop, wanted)

    def results(self, loop: Loop, results: Mapping[str, Any]) -> None:
        """Record the results of this unit's batch.

        Raises
        ------
        TypeError
            For a result that cannot be recorded.
        """
        found = read_results(results, self._params.save_to_gfs)
        run = _open(loop)
        if run is not None:
            run.log(found.numbers)
            _keep(run, found, loop.n_updates)

    def validated(self, loop: Loop, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Record what validations found of the state that the model is in, by their names.

        Raises
        ------
        TypeError
            For a result that cannot be recorded.
        """
        run = _open(loop)
        for name, result in results.items():
            found = read_results(result, self._params.save_to_gfs, f"valid_{name}_")
            loop.evaluated({key: float(value) for key, value in found.numbers.items()})
            if run is not None:
                _keep(run, found, loop.n_updates)
        self._is_validated = True
        if self._params.do_save and loop.n_updates == 0:
            if not self.record_ids:  # else state 0 is saved already
                self._tell(loop)
            self._save(loop, DueContents(record=True))

    def end(self, loop: Loop) -> None:
        """Close what is not saved yet by a last unit, and wait until all is written.

        Raises
        ------
        CheckpointError
            A checkpoint could not be written.
        """
        if not self._params.do_save:
            return
        try:
            if loop.n_updates > self._saved:
                self._tell(loop)
            _flush(loop)
        finally:
            for folder in self._folders:
                loop.kept.store(folder).end()

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self._place.checkpoints, self._place.recent

    def _save(self, loop: Loop, wanted: DueContents) -> None:
        if wanted.checkpoint:
            loop.kept.wait()  # a process killed from here on loses at most this one
        if wanted.checkpoint or self._is_validated:
            _flush(loop)
        self._is_validated = False
        if not wanted.checkpoint:
            return
        if wanted.permanent:
            loop.kept.save(self._place.checkpoints, background=True)
        else:
            keep = Keep(self._params.cache_max_num)
            loop.kept.save(self._place.recent, keep, background=True)

    def _next(self, loop: Loop) -> float:
        """Count one more saved unit; return the seconds since the previous one."""
        now = time.perf_counter()
        seconds, self._since, self._saved = now - self._since, now, loop.n_updates
        self.record_ids.append(f"{self._run_id}:{loop.n_updates}")
        return seconds

    def _tell(self, loop: Loop) -> None:
        """Record one more saved unit, outside of any step."""
        k, seconds, run = loop.n_updates, self._next(loop), _open(loop)
        if run is not None:
            run.note(UNIT, f"unit {k} is saved", unit=k, **{SECONDS: seconds})


def _open(loop: Loop) -> Run | None:
    run = loop.run
    return None if run is None or run.closed else run


def _keep(run: Run, found: Results, k: int) -> None:
    """Record results that are no numbers: arrays as such, the rest in an event."""
    for name, array in found.arrays.items():
        run.log_array(name, array)
    if found.others:
        run.note(UNIT, f"results of unit {k}", unit=k, results=found.others)


def _flush(loop: Loop) -> None:
    """Write the recorded rows to the disk, including the present step."""
    run = _open(loop)
    if run is not None:
        run.controls.settle()
        with suppress(RecordWriteError):  # its status says so; rows wait to be written
            run.flush()
