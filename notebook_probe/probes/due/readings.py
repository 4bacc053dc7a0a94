"""Readings of one set of due probes in a step, and their values; built once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.parameters.reader import ParameterReader
from notebook_probe.probes.reading.columns import StreamResults
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.reading.windows import WindowReading
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import StreamValues
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.window import Window
from notebook_probe.quantities.reduce.features import (
    moment_of,
)

__all__ = ["DueFrame", "Readings"]

NOTHING_S = 1e-9
"""Seconds that count as none: the rounding of sums of seconds."""

ARRIVING = ("grad_output", "grad_input")
"""Features that a backward brings to a call."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Readings:
    """The plans of one set of due probes.

    Attributes
    ----------
    due : tuple of Probe
    calls : dict
        Module path -> what is read in its calls.
    parameters : dict
        Slot -> what is read of the parameter.
    replay : dict
        Place -> what is read when the model is run once more.
    raw : dict
        Readings of the parameters that are read at each accumulation.
    batch : ReadingPlan
        Readings of a batch when the loop passes it.
    batch_needs : frozenset of str
        Features of a batch that are needed at all.
    at_end : tuple of str
        Values of the step that are read when it ends.
    at_update : dict
        Values of the step that are read when an optimizer has stepped, and the probes of them.
    reader : ParameterReader
    streams : tuple of StreamResults
        Results from which each stream's values are computed.
    windows : tuple of WindowReading
        Windows of due probes and of probes that only take in a sample.
    n_states, n_counts : int
        The size of a frame.
    are_light : bool
        The contents of a frame are small, and computing values from them takes almost no time.
    n_steps : int
        Steps that were read so.
    are_none : bool
        Nothing is read.
    """

    due: tuple[Probe, ...]
    calls: dict[str, ReadingPlan]
    parameters: dict[Slot, ReadingPlan]
    replay: dict[str, ReadingPlan]
    raw: dict[Slot, ReadingPlan]
    batch: ReadingPlan
    batch_needs: frozenset[str]
    at_end: tuple[str, ...]
    at_update: dict[str, list[Probe]]
    reader: ParameterReader
    streams: tuple[StreamResults, ...]
    windows: tuple[WindowReading, ...]
    n_states: int
    n_counts: int
    are_light: bool
    n_steps: int = 0
    are_none: bool = field(init=False)
    _spent_before: dict[Probe, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Once: it is asked several times in each step.
        self.are_none = not self.due and not self.windows

    @property
    def n_rows(self) -> int:
        """Number of rows of the record for a step."""
        return len(self.streams)

    def frame(self, step: int) -> DueFrame:
        """Return a frame for one step's readings."""
        self.n_steps += 1
        return DueFrame(step, self, self.n_states, self.n_counts)

    @property
    def of_gradients(self) -> frozenset[int]:
        """Indices of the states of gradients that arrive at calls."""
        read = [(plan, tensor) for plan in self.calls.values() for tensor in ARRIVING]
        cells = chain(*(plan.cells.get(tensor, ()) for plan, tensor in read))
        functions = chain(*(plan.at(moment_of(tensor)) for plan, tensor in read))
        return frozenset([*(cell.index for cell in cells), *(one.index for one in functions)])

    def pool(self, frame: FramePart, part: FramePart, follows: bool) -> None:
        """Pool the readings of calls in a part of the step with those of the frame.

        The part is of later calls if it ``follows``, else of the same.
        """
        for plan in self.calls.values():
            n_before = frame.calls[plan.counter] if follows else 0
            for cell in chain(*plan.cells.values()):
                cell.pool(frame, part, n_before)
            for function in chain(*plan.functions.values()):
                function.pool(frame, part, n_before)

    def end_windows(self, frame: StepFrame, on_host: bool) -> None:
        """Update the windows that need the step's numbers on the host, or the others."""
        for window in self.windows:
            if window.needs_numbers == on_host:
                window.end(frame)

    def look_at_windows(self, frame: StepFrame) -> None:
        """Make the values that windows had if the step ended now; nothing else changes."""
        for window in self.windows:
            window.look(frame)

    def windows_after(self, frame: StepFrame) -> dict[Probe, dict[object, Window]]:
        """Return the windows of each probe as they would be if the step ended now."""
        return {window.probe: window.after(frame) for window in self.windows}

    def values(self, frame: StepFrame, is_final: bool) -> list[StreamValues]:
        """Return the values of the due probes, which count those that are final."""
        return [stream.values(frame, is_final) for stream in self.streams]

    def forget_costs(self) -> None:
        """Count steps, and the time spent in them, from now on."""
        self.n_steps, self._spent_before = 0, {}
        self._spent_before = self.seconds()

    def seconds(self) -> dict[Probe, float]:
        """Time spent for each probe; what several share counts equally."""
        spent: defaultdict[Probe, float] = defaultdict(float)
        for probe, seconds in self._spent_before.items():
            spent[probe] -= seconds
        for sharing, seconds in self.reader.costs():
            for probe in sharing:
                spent[probe] += seconds / len(sharing)
        plans = (self.calls, self.parameters, self.replay, {"": self.batch})
        for plan in (plan for some in plans for plan in some.values()):
            for moment, seconds in [*plan.seconds.items()]:
                sharing = plan.of(moment)
                for probe in sharing:
                    spent[probe] += seconds / len(sharing)
        # Sums in another order differ in their last digit, which must not be a cost.
        return {probe: seconds if seconds > NOTHING_S else 0.0 for probe, seconds in spent.items()}


class DueFrame(StepFrame):
    """The frame of a step in which probes are due, with all that is read in it."""

    __slots__ = ()

    plan: Readings
