"""State of quantities that look back at earlier steps, from one run to the run that continues it.

The state of their windows can be saved and loaded. Without it, they have a gap while their values
would be of fewer steps than documented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import numpy as np

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.reading.window_state import HOST, UnkeepableError, state_of, take_state
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.window import Window
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Source
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.event_texts import sentence
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.schedules import can_foresee

__all__ = ["LookingBack"]

Kept: TypeAlias = "dict[str, Any]"

LAST_ROWS = 64
"""Number of last rows that are searched for a value of an earlier run."""

NOTHING: Mapping[str, Any] = {"step": -1, "batch": None, "windows": []}

OURS = "notebook_probe."
"""Package of the windows that define ``begin_late`` if they remember something over a reset."""

WHY = (
    "they look back at steps before this run, and what was gathered of those was not kept; a "
    "checkpoint of a Loop keeps it, and run.state_dict() gives it to one of your own"
)


class Boundaries(Protocol):
    """The protocol of an object that calls functions between two steps."""

    def once(self, act: Callable[[], None]) -> None:
        """Call ``act`` at the next boundary, on the training thread."""


class LookingBack:
    """The state of the windows of one run.

    Parameters
    ----------
    probes : ProbeSet
    observer : Observer
    steps : ClosedSteps
    record : RecordWriter
    boundaries : Boundaries
    """

    def __init__(
        self,
        probes: ProbeSet,
        observer: Observer,
        steps: ClosedSteps,
        record: RecordWriter,
        boundaries: Boundaries,
    ) -> None:
        self._probes, self._observer, self._steps = probes, observer, steps
        self._record, self._boundaries = record, boundaries
        self._given: Mapping[str, Any] = NOTHING
        self._is_awaited = False

    # ---------------------------------------------------------------- keeping

    def state(self) -> Kept:
        """Return the state of all windows up to the last update; omit what cannot be stored."""
        self._steps.drain()
        observer = self._observer
        frames: list[StepFrame | None] = [observer.evaluation.frame]
        # The last step may still be open although its update is done, and belongs to the state.
        if observer.clock.has_stepped:
            frames.append(self._steps.apart.provisional(observer.steps.frame, has_stepped=True))
        ended: dict[Probe, dict[object, Window]] = {}
        for frame in frames:
            ended |= self._steps.windows_after(frame) if frame is not None else {}
        found = []
        for probe in observer.steps.probes:
            if probe.quantity.spans_steps and not (probe.disabled or probe.is_spoiled):
                # A user's window may hold anything; one that cannot be stored has a gap after
                # resuming.
                windows = ended.get(probe, probe.windows)
                with suppress(UnkeepableError):
                    found.append([probe.variable, probe.place, self._named(windows)])
        return {"step": observer.clock.upcoming, "batch": self._batch, "windows": found}

    @property
    def _batch(self) -> list[Any] | None:
        """The content by which the probe batch is recognized; None without one."""
        batch = self._observer.replay.batch
        return None if batch is None else batch.content

    def _named(self, windows: Mapping[object, Window]) -> list[list[Any]]:
        model_map = self._observer.steps.model_map
        return [[_name(slot, model_map), state_of(window)] for slot, window in windows.items()]

    # ---------------------------------------------------------------- continuing

    def take(self, state: Mapping[str, Any]) -> None:
        """Continue with this state, from the next step on."""
        self._given = state
        self.await_step(None)

    def await_step(self, before: Source | None) -> None:
        """Continue with the given state before the next step, or have gaps.

        Parameters
        ----------
        before : Source, optional
            The resumed record; None if nothing is missing in it.
        """
        if not self._is_awaited:
            self._is_awaited = True
            self._boundaries.once(lambda: self._begin(before))

    def _begin(self, before: Source | None) -> None:
        """Give windows their earlier states, and record the series that have lost theirs."""
        self._is_awaited = False
        step, given, self._given = self._observer.clock.step, self._given, NOTHING
        # A state of another step would mix two histories.
        found = given["windows"] if given["step"] == step else []
        known = {(name, place): windows for name, place, windows in found}
        is_new = bool(found) and given["batch"] != self._batch  # compared with itself alone
        lost = []
        for probe in self._probes.wanted:
            if not probe.quantity.spans_steps:
                continue
            if is_new and "replay" in probe.moments:
                continue
            windows = known.get((probe.variable, probe.place))
            if windows is not None and self._goes_on(probe, windows):
                continue
            if before is not None and _was_recorded(probe, before) and _is_cut(probe, step):
                lost.append(probe)
        for track in (self._observer.training, self._observer.evaluation):
            track.take_windows()
        if lost:
            self._record.event(step, "missed", f"{sentence(lost)}: {WHY}")

    def _goes_on(self, probe: Probe, kept: list[list[Any]]) -> bool:
        """Restore the windows of a probe, if their parameters exist."""
        slots, values = _slots(probe, self._probes.model_map), self._probes.model.parameters()
        # From a checkpoint the state comes on the host; windows expect the model's device.
        device = next((value.device for value in values), HOST)
        found: dict[object, Window] = {}
        for name, state in kept:
            if name not in slots:
                return False
            window: Window = probe.quantity()
            window.reset()
            try:
                take_state(window, state, device)
            except UnkeepableError:
                return False
            found[slots[name]] = window
        probe.windows = found
        return True


def _name(slot: object, model_map: ModelMap) -> str:
    """Return the name of a window's parameter, or ""."""
    if not isinstance(slot, Slot):
        return ""
    owner = slot.owner()
    path = model_map.path_of(owner) if owner is not None else None
    return f"{type(slot).__name__}:{path}:{slot.name}"


def _slots(probe: Probe, model_map: ModelMap) -> dict[str, object]:
    """Return every slot that a probe's windows may have, by name."""
    every: Iterator[Slot] = (
        slot
        for below in (False, True)
        for of in (model_map.slots, model_map.weights)
        for slot in of(probe.place, below)
    )
    return {"": None, **{_name(slot, model_map): slot for slot in every}}


def _was_recorded(probe: Probe, before: Source) -> bool:
    """Return whether there is a value in the last rows of the record."""
    module = module_label(probe.place)
    for stream in (*before.streams.values(), *before.vectors.values()):
        names = {one.name for one in stream.variables}
        if probe.variable in names and module in stream.modules:
            first = max(0, stream.n_rows - LAST_ROWS)
            values = stream.values(probe.variable, first, None, [module])
            if not np.isnan(values).all():
                return True
    return False


def _is_cut(probe: Probe, step: int) -> bool:
    """Make a probe skip values of too few steps; return False if there are none."""
    kind = probe.quantity.function
    probe.windows = {}  # some are made with the plan of the first step, before it begins
    if callable(getattr(kind, "begin_late", None)):
        probe.begins_late = True
        return True
    if not kind.__module__.startswith(OURS):  # it may keep something when it is reset
        probe.begins_late = probe.is_spoiled = True
    elif probe.quantity.samples == "every" and not _was_due(probe, step - 1):
        probe.is_spoiled = True
    return probe.is_spoiled


def _was_due(probe: Probe, step: int) -> bool:
    schedule = probe.armed
    return can_foresee(schedule) and schedule.next_due(step) == step
