"""Record of a test, separate from the units of experiments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torch import nn

from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving.results import Results, read_results
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch

__all__ = ["BatchRecord", "TestRecord"]

RESULTS = "results"
"""Kind of the event with results that are no numbers."""


class TestRecord:
    """Folder of a test, ``tests/<n>`` in that of its experiment.

    Parameters
    ----------
    place : ExperimentFolder
    model : nn.Module
    config : dict
        Config of the test, with ``validates``.
    step : int
        Updates that had been done.
    whole : names
        Results that are not averaged.
    """

    __test__ = False  # pytest would collect it

    def __init__(
        self,
        place: ExperimentFolder,
        model: nn.Module,
        config: Mapping[str, Any],
        step: int,
        whole: Collection[str],
    ) -> None:
        self._model, self._config, self._step, self._whole = model, config, step, whole
        self._folder = _new_folder(place.folder / "tests")

    @contextmanager
    def batches(self, name: str, every: int) -> Iterator[BatchRecord]:
        """Yield a record of one validation, whose steps are its batches."""
        store = self._folder / f"{quote(name, safe='')}.zarr"
        config = {**self._config, "batches_of": name}
        with watch(self._model, store=store, probes=None, resume=False, config=config) as run:
            yield BatchRecord(run, name, every, self._whole)

    def write(self, results: Mapping[str, Mapping[str, Any]]) -> str:
        """Record the results of all validations; return the id of their record."""
        with watch(
            self._model,
            store=self._folder / "record.zarr",
            probes=None,
            step=self._step,
            config=self._config,
        ) as run:
            for name, result in results.items():
                found = read_results(result, self._whole, f"valid_{name}_")
                run.log(found.numbers, phase="eval")
                _keep(run, found, f"results of {name}")
            return _id(run)


class BatchRecord:
    """Results of single batches.

    Parameters
    ----------
    run : Run
    name : str
        Name of the validation.
    every : int
        Interval of the stored batches, from the first one on.
    whole : names

    Attributes
    ----------
    ids : list of str
        Ids of the stored results, in order.
    """

    def __init__(self, run: Run, name: str, every: int, whole: Collection[str]) -> None:
        self._run, self._name, self._every, self._whole = run, name, every, whole
        self.ids: list[str] = []

    def keep(self, i: int, result: Mapping[str, Any]) -> None:
        """Record the result of a batch, numbered from 0."""
        if i % self._every == 0:
            found = read_results(result, self._whole, f"valid_{self._name}_")
            self._run.log(found.numbers)
            _keep(self._run, found, f"results of batch {i}")
            self.ids.append(f"{_id(self._run)}:{i}")
        self._run.step()


def _keep(run: Run, found: Results, text: str) -> None:
    for name, array in found.arrays.items():
        run.log_array(name, array)
    if found.others:
        run.note(RESULTS, text, results=found.others)


def _id(run: Run) -> str:
    return str(run.snapshot().attrs["run_id"])


def _new_folder(tests: Path) -> Path:
    """Return the first free folder, also while other processes test."""
    tests.mkdir(parents=True, exist_ok=True)
    for n in count():
        folder = tests / str(n)
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError  # numbers do not end
