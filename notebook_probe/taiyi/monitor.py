"""Taiyi's Monitor: its config, step numbers and output, on top of a run that records."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from notebook_probe.errors import ClosedRunError, RecordWarning, UnknownNameError
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import as_quantity
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import module_label
from notebook_probe.run.attach.request import read_items
from notebook_probe.run.handle import Handle
from notebook_probe.run.watch import watch
from notebook_probe.schedules import Schedule, schedule
from notebook_probe.taiyi.numbers import Numbered, Numbers

__all__ = ["Monitor", "Tracked"]

NO_UPDATE = (
    "no optimizer has updated the model since the last call of track, so that the step is still "
    "open and has no values yet; a loop without an optimizer calls monitor.run.step() behind track"
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One line of a config, with its probes."""

    name: str
    """Name as written in the config."""
    schedule: Schedule
    """Schedule of the loop's own step numbers."""
    handle: Handle


@dataclass(frozen=True, slots=True)
class Tracked:
    """One quantity of one module, under its name in the config."""

    module: str
    name: str
    variable: str
    """Name in the record."""
    is_vector: bool
    schedules: tuple[Schedule, ...]

    def should_show(self, step: int) -> bool:
        """Return whether it is due at the step with this number in the loop."""
        return any(due(step) for due in self.schedules)


class Monitor:
    """Monitor of the quantities in a config, as Taiyi's Monitor.

    Its measurements are in the record of a run: `run` is an ordinary run, with its panel,
    ``monitor.run.explore()``, and everything else.

    Parameters
    ----------
    model : nn.Module
        Also one that is wrapped, as in DistributedDataParallel.
    configer : dict, optional
        ``{where: [quantity, [quantity], [quantity, schedule], ...]}``. ``where`` is a path, a class
        or its name, or a glob; a quantity is a name, Taiyi's or ours, or a function; a schedule
        ``"linear(5,0)"``, a number or a callable. None and ``{}`` measure nothing.
    **watching
        Further arguments of `notebook_probe.watch`: ``store``, ``name``, ``optimizer``, ...

    Attributes
    ----------
    run : Run

    Raises
    ------
    TypeError
        A config that is no dict.
    UnknownNameError, ScheduleError, QuantityError, NotApplicableError
        A module, quantity or schedule does not exist, or a quantity does not fit; nothing was
        recorded.

    Examples
    --------
    >>> monitor = Monitor(model, {nn.BatchNorm2d: [["MeanTID", "linear(5,0)"], "InputSndNorm"]})
    ... # doctest: +SKIP
    >>> for step, (x, y) in enumerate(loader):  # doctest: +SKIP
    ...     loss_fn(model(x), y).backward()
    ...     monitor.track(step)
    ...     optimizer.step()
    """

    def __init__(
        self, model: nn.Module, configer: Mapping[Any, Any] | None = None, **watching: Any
    ) -> None:
        if not isinstance(configer, Mapping | None):
            raise TypeError(
                f"Monitor(..., {type(configer).__name__}): a config is a dict, such as "
                f'{{"fc1": ["InputSndNorm", ["WeightNorm", "linear(5,0)"]]}}'
            )
        self._numbers = Numbers()
        self._has_tracked = self._is_stuck = False
        self._warned: set[str] = set()
        items = [
            (where, quantity, schedule(when))
            for where, listed in (configer or {}).items()
            for quantity, when in read_items(listed)
        ]
        asked: dict[Any, list[Any]] = {}
        for where, quantity, due in items:
            asked.setdefault(where, []).append([quantity, Numbered(due, self._numbers)])
        self.run = watch(model, probes=asked or None, **watching)  # refuses invalid requests
        self._items = tuple(
            _Item(
                quantity if isinstance(quantity, str) else as_quantity(quantity).name,
                due,
                # Attached by `watch` already; this returns the handle.
                self.run.attach(where, quantity, Numbered(due, self._numbers)),
            )
            for where, quantity, due in items
        )

    def track(self, step: int) -> None:
        """Give the present step a number, between its backward and the optimizer's step.

        Schedules count by these numbers, whether they number updates or calls of `track`, which may
        come once in ten updates. Quantities are measured before the number is known: where numbers
        leap, what became due by the leap was not measured, and a warning says so. Values of a
        number that is given again replace the earlier ones. Without `track`, schedules count by
        the numbers of the run, which are the updates from 0. In a loop without an optimizer of
        torch, call ``monitor.run.step()`` after it.

        Raises
        ------
        TypeError, ValueError
            For anything but a whole number from 0.
        ClosedRunError

        Warns
        -----
        RecordWarning
            Once, where no update happens between two calls, and for numbers that leap.
        """
        if not isinstance(step, Integral) or isinstance(step, bool):
            raise TypeError(f"track({step!r}): a whole number is expected")
        if step < 0:
            raise ValueError(f"track({step}): a number from 0 is expected")
        if self.run.closed:
            raise ClosedRunError(f"track({step}): run {self.run.name!r} is closed")
        place, number = self.run.controls.open_step, int(step)
        before = self._numbers.given(place) if self._has_tracked else None
        expected = self._numbers.possible(place)
        self._has_tracked = True
        self._numbers.give(place, number)
        if before not in (None, number):
            self._is_stuck = True
            self._warn_once("update", f"track({number}): {NO_UPDATE}")
        elif self._misses(number, expected):
            numbers = " or ".join(map(str, expected))
            self._warn_once(
                "leap",
                f"track({number}): what is due at this number was not measured, as {numbers} was "
                f"expected; schedules are asked before the forward, so give evenly spaced numbers",
            )

    def _misses(self, number: int, expected: Collection[int]) -> bool:
        """Return whether something is due at a number and was not at those that were expected."""
        dues = [item.schedule for item in self._items]
        return any(due(number) and not any(map(due, expected)) for due in dues)

    def _warn_once(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, RecordWarning, stacklevel=3)

    def get_output(self) -> dict[str, dict[str, dict[int, Any]]]:
        """Return all values by module, by quantity as named in the config, and by step.

        Numbers are floats, vectors arrays. A step is listed once its update has happened, if it was
        measured.

        Warns
        -----
        RecordWarning
            No update has happened between two calls of `track`.
        """
        if self._is_stuck and not self.run.controls.status_head().step:
            warnings.warn(f"get_output(): {NO_UPDATE}", RecordWarning, stacklevel=2)
        output: dict[str, dict[str, dict[int, Any]]] = {}
        for one in self.tracked():
            of_module = output.setdefault(one.module, {})
            of_module[one.name] = _values(self.history(one))
        return output

    def clean_mem(self) -> None:
        """Start again: clear output and windows; the record is kept."""
        if not self.run.closed:
            self.run.controls.settle()
            self.run.flush()  # with it the windows have all that was trained so far
        self._numbers.forget(self.run.controls.status_head().step)
        for _, probe in self._probes():
            for window in probe.windows.values():
                window.reset()

    def tracked(self) -> tuple[Tracked, ...]:
        """Return every quantity of every module that the config selects."""
        found: dict[tuple[str, str, str, bool], tuple[Schedule, ...]] = {}
        for item, probe in self._probes():
            key = probe.place, item.name, probe.variable, probe.quantity.axis is not None
            found[key] = (*found.get(key, ()), item.schedule)
        return tuple(Tracked(*key, schedules) for key, schedules in found.items())

    def history(self, one: Tracked) -> xr.DataArray:
        """Return the values of a quantity along ``step``, in the loop's numbers, each once."""
        try:
            series = self.run.series(one.module, one.variable)
        except UnknownNameError:  # nothing has been recorded of it
            return xr.DataArray(np.zeros(0), dims="step", coords={"step": np.zeros(0, int)})
        places: dict[int, int] = {}
        for place, step in enumerate(series.step.values.tolist()):
            number = self._numbers.of(step)
            if number is not None and one.should_show(number):
                places[number] = place
        return series.isel(step=[*places.values()]).assign_coords(step=[*places])

    def shown(self, step: int) -> dict[Tracked, Any]:
        """Return the values that are due at the loop's step of this number, and were measured.

        Each value is a number, or of a vector its whole history.
        """
        place, found = self._numbers.step_of(step), dict[Tracked, Any]()
        if self._numbers.given(place) != step:
            return found
        data = self.run.data
        rows: dict[str, dict[str, float]] = {}
        for one in self.tracked():
            if not one.should_show(step):
                continue
            if one.is_vector:
                history = self.history(one)
                if step in history.step.values:
                    found[one] = history
                continue
            if one.variable not in rows:
                rows[one.variable] = _row(data, one.variable, place)
            if module_label(one.module) in rows[one.variable]:
                found[one] = rows[one.variable][module_label(one.module)]
        return found

    def is_over(self, step: int) -> bool:
        """Return whether the update of the loop's step of this number has happened."""
        return self._numbers.step_of(step) < self.run.controls.status_head().step

    def _probes(self) -> Iterator[tuple[_Item, Probe]]:
        for item in self._items:
            for probe in item.handle.probes:
                yield item, probe


def _values(series: xr.DataArray) -> dict[int, Any]:
    """Return values by step; a vector as an array."""
    steps = series.step.values.tolist()
    if series.ndim == 1:
        return dict(zip(steps, series.values.tolist(), strict=True))
    return {step: np.array(row) for step, row in zip(steps, series.values, strict=True)}


def _row(data: xr.Dataset, variable: str, step: int) -> dict[str, float]:
    """Return the measured numbers of one step, by module."""
    place = int(np.searchsorted(data.step.values, step))
    if variable not in data or place == data.sizes["step"] or data.step.values[place] != step:
        return {}
    row = data[variable].isel(step=place)
    values = np.asarray(row.values, np.float32)
    is_there = measured(values)
    modules = row.module.values[is_there].tolist()
    return dict(zip(modules, values[is_there].tolist(), strict=True))
