"""Frame of one open step: its measurements so far. Cells fill it; results are made of it."""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.probes.step.collected import Collected
from notebook_probe.probes.step.gradient_hooks import await_return, hook_in_graph, hook_leaf
from notebook_probe.probes.step.measured import StreamValues
from notebook_probe.probes.step.passes import BackwardKind, BackwardPass, BackwardPasses, Together
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.define.window import Window
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["StepFrame", "StepPlan"]


_running_pass = torch._C._current_graph_task_id

NO_PASS = -2
"""Number that torch gives neither to a backward nor to being outside of any."""


class Removable(Protocol):
    """Protocol of what was put up for a step."""

    def remove(self) -> None:
        """Take it down; again, if it has been taken down before."""


class StepPlan(Protocol):
    """Protocol of a frame's readings, for the frame and for closing it.

    `Readings`, which imports this module, is one.

    Attributes
    ----------
    due : tuple of Probe
    at_end : tuple of str
        Values of the step that are read when it ends.
    are_light : bool
        What a frame holds is small, and values are made of it in no time.
    """

    due: tuple[Probe, ...]
    at_end: tuple[str, ...]
    are_light: bool

    @property
    def are_none(self) -> bool:
        """True if nothing is read."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the record for the step."""

    @property
    def of_gradients(self) -> frozenset[int]:
        """Indices of the states of gradients that arrive at calls."""

    def pool(self, frame: StepFrame, part: StepFrame, follows: bool) -> None:
        """Pool the readings of calls in a part of the step with those of the frame.

        The part is of later calls if it ``follows``, else of the same.
        """

    def end_windows(self, frame: StepFrame, on_host: bool) -> None:
        """Update the windows that need the step's numbers on the host, or the others."""

    def look_at_windows(self, frame: StepFrame) -> None:
        """Make the values that windows had if the step ended now; nothing else changes."""

    def windows_after(self, frame: StepFrame) -> dict[Probe, dict[object, Window]]:
        """Return the windows of each probe as they would be if the step ended now."""

    def values(self, frame: StepFrame, is_final: bool) -> Sequence[StreamValues]:
        """Return the values of the due probes, which count those that are final."""


class StepFrame:
    """The readings of one step, pooled over calls, micro-batches and tensors.

    Parameters
    ----------
    step : int
        0-based: updates completed before this step's batch.
    plan : StepPlan, optional
        What is read in it; None for a step that only has scalars.
    n_states, n_counts : int
        How many cells there are, and places whose calls are counted.
    passes : BackwardPasses, optional
        Those of the step, of which this is a part.
    """

    # What most steps have nothing of is of the class until it is set: a frame is made every step.
    closed = False
    has_failures = has_copies = False  # in place of states, to be measured
    on_device = False
    """True if something measured waits on an accelerator."""
    loss: Number | None = None
    """Value that `backward()` was called on, of the passes that were applied."""
    recorded_beside: frozenset[str] = frozenset()
    """Names of those that are recorded of a state; here quantities may read them."""
    of_state = False
    """True if it holds what was logged of the state before the step, and nothing of the step."""
    is_unseen = False
    """No call of the model was seen in it, as of one that is compiled."""
    awaits_gradient = False
    """True if something of it has a hook that hears of a backward."""
    has_returned = counts = False
    """Properties of a part: the call was not broken off; it counts in any case."""
    seconds = 0.0
    """Time spent in our own code during this step."""
    planned = 0.0
    """Seconds of these that were spent once, to plan what is read together."""
    _pass, _is_here = NO_PASS, False
    _elsewhere: StepFrame | None = None
    _own: Together | None = None
    _loose: StepFrame | None = None
    # Replaced, never changed.
    _came: tuple[BackwardPass, ...] = ()
    _asides: Mapping[Together, StepFrame] = MappingProxyType({})
    _parts: Sequence[StepFrame] = ()

    def __init__(
        self,
        step: int,
        plan: StepPlan | None = None,
        n_states: int = 0,
        n_counts: int = 0,
        passes: BackwardPasses | None = None,
    ) -> None:
        self.step = step
        self.plan = plan
        self.time_ms = time.time_ns() // 1_000_000
        self.begun = self.heard = time.perf_counter()
        """When it was opened; when a hook last had something of it."""
        self.scalars: dict[str, Number] = {}
        """What the user logged."""
        self.arrays: dict[tuple[str, str], Any] = {}
        """Arrays that the user logged, by place and name."""
        self.collected: dict[tuple[str, str], Collected] = {}
        """What the model gave of itself, by place and name."""
        self.batch: dict[str, Tensor] = {}
        """What the loop has handed over of the batch that is trained now."""
        self.of_step: dict[str, Any] = {}
        """Values of the step as a whole, by feature."""
        self._handles: list[Removable] = []
        self.states: list[Any] = [None] * n_states
        self.calls: list[int] = [0] * n_counts
        self.accumulations: list[int] = [0] * n_counts
        """Of each parameter."""
        self.passes = BackwardPasses() if passes is None else passes

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

    def begin_part(self) -> StepFrame:
        """Open a frame for one call of the model, until it is known whether it counts.

        It is closed with the step.
        """
        part, self.is_unseen = self._part(), False
        self._parts = (*self._parts, part)
        return part

    def loose_part(self) -> StepFrame:
        """Return the frame for any other call: of modules called alone, of recomputations.

        It counts.
        """
        if self._loose is None:
            self._loose = self.begin_part()
            self._loose.counts = True
        return self._loose

    def receiver(self) -> StepFrame | None:
        """Return the frame for the arriving gradient; None if it is not the training's.

        Those of the first passes that accumulate are kept here. What others bring, and what
        `torch.autograd.grad` returns, lies aside until it is known what of it counts.
        """
        now = _running_pass()
        if now != self._pass:
            self._receive(self.passes.running())
            self._pass = now
        return self if self._is_here else self._elsewhere

    def hear(self) -> None:
        """Note that a pass has come; nothing of it is read here."""
        if not self.closed:
            self.receiver()

    def _receive(self, one: BackwardPass) -> None:
        self._is_here, self._elsewhere = False, None
        if one not in self._came:
            self._came = (*self._came, one)
            if one.kind is BackwardKind.DIFFERENTIATED:
                await_return(self.hear)
        if one.kind is BackwardKind.DIFFERENTIATED:
            return
        if self._own is None and one.kind is BackwardKind.ACCUMULATED:
            self._own = one.together
        if one.together is self._own:
            self._is_here = True
            return
        if one.together not in self._asides:
            self._asides = {**self._asides, one.together: self._part()}
        self._elsewhere = self._asides[one.together]

    @property
    def has_gradient(self) -> bool:
        """True for a part that a training backward has reached and gone through."""
        return any(map(self.passes.is_training, self._came))

    @property
    def is_discarded(self) -> bool:
        """True for a part if every backward that has reached it was in vain."""
        return bool(self._came) and all(map(self.passes.is_discarded, self._came))

    def _part(self) -> StepFrame:
        part = StepFrame(self.step, self.plan, len(self.states), len(self.calls), self.passes)
        part.batch = self.batch
        return part

    @property
    def is_untouched(self) -> bool:
        """True if it holds nothing but its loss, and nothing has to be taken down."""
        return not (
            self.scalars
            or self.arrays
            or self.collected
            or self._parts
            or self._came
            or self._asides
            or self._handles
            or self.batch
            or self.of_step
            or self.has_failures
        )

    @property
    def is_empty(self) -> bool:
        """True if nothing is recorded of it: nothing was due, nothing logged."""
        if self.scalars or self.arrays or self.collected:
            return False
        return not self.reads

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
        """Decide what of the step counts, and pool it."""
        self._settle_passes()
        parts, self._parts, self._loose = self._parts, (), None
        for part in parts:
            part._settle_passes()
            self._add_costs(part)
        for nth, part in enumerate(_counting(parts)):
            self._pool(part, is_first=nth == 0)

    def _settle_passes(self) -> None:
        """Keep the gradients of the passes that count."""
        asides, self._asides = self._asides, MappingProxyType({})
        for aside in asides.values():
            self._add_costs(aside)
        if self.plan is None or not (asides or self._own):
            return
        if self._own is not None and not self.passes.counts(self._own):
            gone = self.plan.of_gradients
            self.states = [None if i in gone else s for i, s in enumerate(self.states)]
        for together, aside in asides.items():
            if self.passes.counts(together):
                self.states = [*self.states]
                self.plan.pool(self, aside, follows=False)

    def _pool(self, part: StepFrame, is_first: bool) -> None:
        if is_first or self.plan is None:
            pairs = zip(self.states, part.states, strict=True)
            self.states = [found if own is None else own for own, found in pairs]
            self.calls = [*part.calls]
        else:
            self.plan.pool(self, part, follows=True)
            self.calls = [*map(operator.add, self.calls, part.calls)]
        for key, theirs in part.collected.items():
            self.collected.setdefault(key, Collected(theirs.combine)).values.extend(theirs.values)

    def _add_costs(self, part: StepFrame) -> None:
        """Add the costs of a part, whether it counts or not."""
        self.seconds += part.seconds
        self.has_failures |= part.has_failures
        self.on_device |= part.on_device

    def hook(self, tensor: Tensor, read: Callable[[Tensor], None]) -> None:
        """Put a hook on a gradient; a leaf outlives its graph, so its hook ends with the step."""
        self.awaits_gradient = True
        if tensor.is_leaf:
            self.keep(hook_leaf(tensor, read))
        else:
            hook_in_graph(tensor, read)

    def keep(self, handle: Removable) -> None:
        """Take something down when the step ends, should it still be up."""
        self._handles.append(handle)

    def close(self) -> None:
        """Read no more."""
        parts = self._parts
        if parts or self._came:
            self.settle()
            self.passes.clear()
        for frame in (self, *parts):
            frame._end()

    def _end(self) -> None:
        self.closed = True
        self.batch = {}
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def collect(self, place: str, name: str, value: Number, combine: Combine) -> None:
        """Keep a value that the model collected."""
        pooled = self.collected.setdefault((place, name), Collected(combine))
        pooled.values.append(value)
        if isinstance(value, Tensor):
            self.on_device = True

    def blame(self, probe: Probe, error: Exception) -> None:
        """Count a failed reading against the probe; a tensor without values is only a gap."""
        if isinstance(error, UnreadableError):
            probe.gap = str(error)
        else:
            probe.failed(error, self.step)
            self.has_failures = True

    def blame_all(self, probes: Iterable[Probe], error: Exception) -> None:
        """Count a failed reading against all probes that share it."""
        for probe in probes:
            self.blame(probe, error)


def _counting(parts: Sequence[StepFrame]) -> Sequence[StepFrame]:
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
