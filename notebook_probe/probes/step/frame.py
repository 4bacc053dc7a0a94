"""Frame of one open step: its measurements so far. Cells fill it; results are made of it."""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Sequence, Set
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from notebook_probe.probes.step.measured import StreamValues
from notebook_probe.probes.step.part import Collected, FramePart, PartPlan, Removable
from notebook_probe.probes.step.passes import BackwardPasses
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.window import Window
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["PassedStep", "StepFrame", "StepPlan"]


class StepPlan(PartPlan, Protocol):
    """Protocol of a frame's readings, for the frame and for closing it.

    `Readings`, which imports this module, is one.

    Attributes
    ----------
    due : tuple of Probe
    at_end : tuple of str
        Values of the step that are read when it ends.
    are_light : bool
        The contents of a frame are small, and computing values from them takes almost no time.
    are_none : bool
        Nothing is read.
    """

    due: tuple[Probe, ...]
    at_end: tuple[str, ...]
    are_light: bool
    are_none: bool

    @property
    def n_rows(self) -> int:
        """Number of rows of the record for the step."""

    def end_windows(self, frame: StepFrame, on_host: bool) -> None:
        """Update the windows that need the step's numbers on the host, or the others."""

    def look_at_windows(self, frame: StepFrame) -> None:
        """Make the values that windows had if the step ended now; nothing else changes."""

    def windows_after(self, frame: StepFrame) -> dict[Probe, dict[object, Window]]:
        """Return the windows of each probe as they would be if the step ended now."""

    def values(self, frame: StepFrame, is_final: bool) -> Sequence[StreamValues]:
        """Return the values of the due probes, which count those that are final."""


class PassedStep(NamedTuple):
    """A step in which nothing was due.

    Attributes
    ----------
    time_ms : int
        Time at which the step began.
    loss : float, Tensor or None
        A tensor on an accelerator.
    seconds, cost : float
        Duration of the step, and the part of it that watching took.
    logged : StepFrame or None
        Frame of the same step with what the loop has logged, and nothing else.
    """

    time_ms: int
    loss: Number | None
    seconds: float
    cost: float
    logged: StepFrame | None = None


_made = tuple.__new__
"""Make a named tuple without its constructor, a function in Python that would run at each step."""


class StepFrame(FramePart):
    """The readings of one step, pooled over calls, micro-batches and tensors.

    Parameters
    ----------
    step : int
        0-based: updates completed before this step's batch.
    plan : StepPlan, optional
        Readings of the step; None for a step that only has scalars.
    n_states, n_counts : int
        Number of cells, and number of places whose calls are counted.
    """

    plan: StepPlan | None
    # What most steps have nothing of is of the class until it is set: a frame is made every step.
    loss: Number | None = None
    """Value that `backward()` was called on, of the passes that were applied."""
    recorded_beside: frozenset[str] = frozenset()
    """Names of those that are recorded of a state; here quantities may read them."""
    of_state = False
    """True if it holds what was logged of the state before the step, and nothing of the step."""
    is_over = False
    """The loop has said that the step is over; it stays open, as nothing is due."""
    is_unseen = False
    """No call of the model was seen in it, for example because the model is compiled."""
    _loose: FramePart | None = None
    _parts: Sequence[FramePart] = ()  # replaced, never changed

    # Without `super().__init__`: a frame is made at every step, and a call less is what it costs.
    def __init__(
        self,
        step: int,
        plan: StepPlan | None = None,
        n_states: int = 0,
        n_counts: int = 0,
    ) -> None:
        self.step = step
        self.plan = plan
        self.time_ms = time.time_ns() // 1_000_000
        self.begun = self.heard = time.perf_counter()
        """Time at which it was opened; time of the last call of a hook for it."""
        self.scalars: dict[str, Number] = {}
        """Scalars that the user logged."""
        self.arrays: dict[tuple[str, str], Any] = {}
        """Arrays that the user logged, by place and name."""
        self.collected: dict[tuple[str, str], Collected] = {}
        """Values that the model's code collected, by place and name."""
        self.batch: dict[str, Tensor] = {}
        """Tensors of the present batch that the loop has handed over."""
        self.of_step: dict[str, Any] = {}
        """Values of the step as a whole, by feature."""
        self._handles: list[Removable] = []
        self.states: list[Any] = [None] * n_states
        self.calls: list[int] = [0] * n_counts
        self.accumulations: list[int] = [0] * n_counts
        """Number of passes that added to each parameter's gradient."""
        self.passes = BackwardPasses()

    @property
    def has_parts(self) -> bool:
        """True if calls were read by hooks, and it is not decided yet which of them count."""
        return bool(self._parts)

    def logged(self, names: Set[str]) -> Set[str]:
        """Return those of some names that were logged of the step."""
        return (names & self.scalars.keys()) - self.recorded_beside

    def with_early(self, early: StepFrame) -> StepFrame:
        """Return the step with what was logged before it began."""
        joined = copy.copy(self)
        joined.scalars = early.scalars
        if self.scalars:
            joined.scalars = {**early.scalars, **self.scalars}
        joined.arrays = {**early.arrays, **self.arrays}
        joined.recorded_beside |= early.recorded_beside - self.scalars.keys()
        joined.on_device |= early.on_device
        return joined

    def begin_part(self) -> FramePart:
        """Open a frame for one call of the model, until it is known whether it counts.

        It is closed with the step.
        """
        part, self.is_unseen = self._part(), False
        self._parts = (*self._parts, part)
        return part

    def loose_part(self) -> FramePart:
        """Return the frame for any other call: of modules called alone, of recomputations.

        It counts.
        """
        if self._loose is None:
            self._loose = self.begin_part()
            self._loose.counts = True
        return self._loose

    def moves_on(self, now: float, passed: dict[int, PassedStep]) -> bool:
        """Leave this step in ``passed``, and become the frame of the next, which begins ``now``.

        Return False if that needs another frame: this one holds more than a loss and logged
        numbers, or something has to be taken down. Its number comes last: until then an interrupt
        leaves the step that is over, and this is done again.
        """
        if (
            self.arrays
            or self.collected
            or self._parts
            or self._came
            or self._asides
            or self._handles
            or self.batch
            or self.has_failures
        ):
            return False
        logged = self._what_is_logged() if self.scalars else None
        row = self.time_ms, self.loss, now - self.begun, self.seconds, logged
        passed.setdefault(self.step, _made(PassedStep, row))
        if logged is not None:
            self.scalars, self.recorded_beside, self.on_device = {}, frozenset(), False
        self.loss, self.begun, self.seconds, self.planned = None, now, 0.0, 0.0
        self.of_step.clear()  # which nothing reads
        self.time_ms = time.time_ns() // 1_000_000
        self.step += 1
        return True

    def _what_is_logged(self) -> StepFrame:
        """Return a frame of the same step with what was logged in it, and nothing else."""
        logged = StepFrame(self.step)
        logged.time_ms, logged.scalars = self.time_ms, self.scalars
        logged.recorded_beside, logged.on_device = self.recorded_beside, self.on_device
        return logged

    @property
    def is_empty(self) -> bool:
        """True if nothing is recorded of it: nothing was due, nothing logged."""
        if self.scalars or self.arrays or self.collected:
            return False
        return self.plan is None or self.plan.are_none

    @property
    def reads(self) -> bool:
        """True if something is due in it, or receives every step."""
        return self.plan is not None and not self.plan.are_none

    @property
    def n_rows(self) -> int:
        """Number of rows of the record for its due probes, or for what was logged."""
        return max(1, self.plan.n_rows if self.plan is not None else 0)

    def settled(self) -> StepFrame:
        """Return a copy with all that counts now; the frame itself continues to be filled."""
        here = copy.copy(self)
        here.states = [*self.states]
        here._parts = [copy.copy(part) for part in self._parts]
        here.collected = {key: one.copy() for key, one in [*self.collected.items()]}
        here.settle()
        return here

    def settle(self) -> None:
        """Decide which parts of the step count, and pool them."""
        if self._own is not None or self._asides:
            self.settle_passes()
        parts, self._parts, self._loose = self._parts, (), None
        for part in parts:
            part.settle_passes()
            self.add_costs(part)
        for nth, part in enumerate(_counting(parts)):
            self._pool(part, is_first=nth == 0)

    def _pool(self, part: FramePart, is_first: bool) -> None:
        if is_first or self.plan is None:
            pairs = zip(self.states, part.states, strict=True)
            self.states = [found if own is None else own for own, found in pairs]
            self.calls = [*part.calls]
        else:
            self.plan.pool(self, part, follows=True)
            self.calls = [*map(operator.add, self.calls, part.calls)]
        for key, theirs in part.collected.items():
            self.collected.setdefault(key, Collected(theirs.combine)).values.extend(theirs.values)

    def close(self) -> None:
        """Read no more."""
        parts = self._parts
        if parts or self._came:
            self.settle()
            self.passes.clear()
        for frame in (self, *parts):
            frame.end()


def _counting(parts: Sequence[FramePart]) -> Sequence[FramePart]:
    """Return the calls of the model that are the step's.

    Those that a gradient came back to, unless it was cleared. Where none did those that returned:
    who trains without a backward, or from something that the model keeps, has no others.
    """
    if len(parts) == 1:
        return parts
    asked = [part for part in parts if not part.counts and not part.is_discarded]
    with_gradient = [part for part in asked if part.has_gradient]
    found = with_gradient or [part for part in asked if part.has_returned] or asked
    return [part for part in parts if part.counts or part in found]
