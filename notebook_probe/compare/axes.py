"""Axes along which runs are compared: the series that each needs, and how it is read.

======== ==================================================================================
step     updates
time     seconds since the run's first row, breaks included
samples  what ``run.log(samples=...)`` counts, or how many a step takes: as the record notes it of
         ``run.batches(loader)``, or ``batch_size`` of the config
epochs   from where ``run.log(epoch=...)``, or an event of the record, says that one begins
another  the smallest value so far of a logged scalar such as ``loss``
======== ==================================================================================

A bare `watch` records only step and time. ``run.batches``, loops, and the callbacks for other
trainers note epochs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from notebook_probe.compare.rows import GrowingRows, logged, times
from notebook_probe.compare.tables import FAR, Envelope, Places, Table, line
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.loss_names import LOSS, loss_name
from notebook_probe.record.format.notes import CONFIG, EPOCH, SAMPLES, read_notes
from notebook_probe.record.format.source import ROOT, Event, Source
from notebook_probe.record.views.xarray_views import RunSource

__all__ = [
    "AXES",
    "RunAxis",
    "epoch_reader",
    "epochs_missing",
    "logged_names",
    "look_again",
    "time_reader",
]

COUNTS = ("samples", "n_samples", "samples_seen", "num_samples", "consumed_samples")
EPOCHS = ("epoch", "epochs")
BATCH = ("batch_size", "batch")
"""Usual names of the batch size, logged or in the config; the first that exists counts."""


Reader = Callable[[RunSource], Places]


class RunAxis:
    """One run along one axis; reads only new rows of a growing run.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    by : str
        ``"step"``, ``"time"``, ``"samples"``, ``"epochs"``, or the name of a logged scalar.

    Raises
    ------
    UnknownNameError
        The run has no record of a series that the axis needs: ``samples are not recorded in
        digits-cnn-5; ...``.
    """

    def __init__(self, source: RunSource, by: str = "step") -> None:
        self.by, self._source = by, source
        self._read = AXES[by](source) if by in AXES else _value(source, by)
        self._revision = -1
        self._places: Places = line(0.0)

    @property
    def places(self) -> Places:
        """Positions at each step of the run so far."""
        revision = self._source.revision
        if revision != self._revision:
            self._revision, self._places = revision, self._read(self._source)
        return self._places


def look_again(runs: Iterable[RunSource]) -> None:
    """Bring records up to date, by reading their revision."""
    for run in runs:
        _ = run.revision


def logged_names(source: Source) -> tuple[str, ...]:
    """Return the numbers of the whole run: logged ones, and quantities measured at the root.

    Examples
    --------
    >>> logged_names(nbp.open_run("runs/first.zarr"))  # doctest: +SKIP
    ('loss', 'samples')
    """
    streams = [stream for stream in source.streams.values() if ROOT in stream.modules]
    return tuple(dict.fromkeys(one.name for stream in streams for one in stream.variables))


def _step(source: RunSource) -> Reader:
    return lambda _: line(1.0)


def time_reader(source: Source) -> Callable[[Source], Table]:
    """Return a reader of seconds since a run's first row; reads only new rows of a growing run."""
    rows = times()

    def read(run: Source) -> Table:
        steps, ms = rows.read_new(run)
        if len(ms) == 0:
            return _never_falling(steps, ms)
        return _never_falling(steps, (ms - ms.min()) / 1000.0)

    return read


def _samples(source: RunSource) -> Reader:
    name = _first(COUNTS, logged_names(source))
    if name is not None:
        return _counted(logged(name))
    if any(_per_step(event) for event in source.events):
        return _noted_samples
    config = read_notes(source.snapshot().attrs, CONFIG)
    size = next((config[one] for one in BATCH if _is_size(config.get(one))), None)
    if size is None:
        ways = "run.log(samples=...), run.batches(loader) or watch(..., config={'batch_size': 64})"
        raise _not_recorded("samples", source, ways)
    return lambda _: line(float(size))


def epoch_reader(source: Source) -> Callable[[Source], Table]:
    """Return a reader of the starts of epochs; reads only new rows of a growing run.

    Raises
    ------
    UnknownNameError
        The run has no record of epochs.
    """
    name = _first(EPOCHS, logged_names(source))
    if name is not None:
        rows = logged(name)
        return lambda run: _begun(_never_falling(*rows.read_new(run)))
    if not any(event.kind == EPOCH for event in source.events):
        raise epochs_missing(source)
    return _noted_epochs


def epochs_missing(source: Source) -> UnknownNameError:
    """Return the error for a run that has no record of epochs."""
    return _not_recorded("epochs", source, "run.log(epoch=...) or run.batches(loader)")


def _value(source: RunSource, by: str) -> Reader:
    names = logged_names(source)
    name = loss_name(names) if by == LOSS else source.recorded_name(by)
    if name not in names:
        raise UnknownNameError(
            f"{by} is not recorded in {source.name}; allowed: {', '.join(AXES)} or a logged "
            f"scalar; {near(by, [*AXES, *names])}"
        )
    rows = logged(name)
    return lambda run: Envelope.of(*rows.read_new(run))


AXES: Mapping[str, Callable[[RunSource], Reader]] = {
    "step": _step,
    "time": time_reader,
    "samples": _samples,
    "epochs": epoch_reader,
}
"""Axes that are no logged scalar, by name."""


def _counted(rows: GrowingRows) -> Reader:
    return lambda run: _never_falling(*rows.read_new(run))


def _noted_samples(source: Source) -> Places:
    """Return samples per step from each event on; steps before the first use the first."""
    found = {event.step: _per_step(event) for event in source.events if _per_step(event)}
    begins = sorted(found)
    steps = np.array([0, *begins[1:], int(FAR)], np.int64)
    taken = np.diff(steps) * np.array([found[step] for step in begins])
    return Table(steps, np.cumsum([0.0, *taken]))


def _noted_epochs(source: Source) -> Table:
    starts: dict[int, float] = {}
    for event in source.events:
        if event.kind == EPOCH:
            before = max(starts.values(), default=-1.0)
            number = _number(event, "epoch", -1.0)
            starts.setdefault(event.step, max(before + 1.0, number))
    steps = np.array(sorted(starts), np.int64)
    return _begun(Table(steps, np.array([starts[step] for step in steps.tolist()])))


def _begun(epochs: Table) -> Table:
    """Return evenly spaced positions between starts; the last epoch is as long as the previous."""
    begins = np.diff(epochs.places, prepend=-np.inf) > 0
    steps, places = epochs.steps[begins], epochs.places[begins]
    if len(steps) > 1:
        steps = np.append(steps, 2 * steps[-1] - steps[-2])
        places = np.append(places, 2 * places[-1] - places[-2])
    return Table(steps, places)


def _per_step(event: Event) -> float:
    """Return the samples per step in an event; 0 if it has none."""
    per_step = _number(event, "per_step", 0.0) if event.kind == SAMPLES else 0.0
    return per_step if 0 < per_step < FAR else 0.0


def _number(event: Event, name: str, other: float) -> float:
    try:
        return float(json.loads(event.detail)[name])
    except (ValueError, TypeError, KeyError):
        return other


def _never_falling(steps: Any, places: Any) -> Table:
    """Return one position per step, the greatest so far: clocks and counts may go back."""
    finite = np.isfinite(places)
    steps, places = steps[finite], places[finite]
    last = np.diff(steps, append=np.iinfo(np.int64).max) > 0
    highest = np.maximum.accumulate(places) if len(places) else places
    return Table(steps[last], highest[last])


def _first(wanted: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _not_recorded(what: str, source: Source, remedy: str) -> UnknownNameError:
    return UnknownNameError(f"{what} are not recorded in {source.name}; {remedy} does it")
