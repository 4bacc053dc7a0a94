"""One open step: what has been measured so far. Cells fill it; results are made of it."""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.probes.step.gradient_hooks import hook_in_graph, hook_leaf
from notebook_probe.probes.step.measured import StreamValues
from notebook_probe.probes.step.passes import BackwardKind, Pass, Passes, Together
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.numbers import COMBINE
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["Collected", "StepFrame", "StepPlan"]


_running_pass = torch._C._current_graph_task_id

NO_PASS = -2
"""No number that torch gives to a backward, nor to being outside of any."""


class Removable(Protocol):
    """Something that was put up for a step."""

    def remove(self) -> None:
        """Take it down; again, if it has been taken down before."""


class StepPlan(Protocol):
    """What a frame, and who closes it, needs to know of the readings of its step.

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
    def n_rows(self) -> int:
        """Rows of the record that the step comes to."""

    @property
    def of_gradients(self) -> frozenset[int]:
        """Which states are of what a backward brings to calls."""

    def pool(self, frame: StepFrame, part: StepFrame, follows: bool) -> None:
        """Pool what a part of the step has read of calls with what the frame has of them.

        The part is of later calls if it ``follows``, else of the same.
        """

    def end_windows(self, frame: StepFrame, on_host: bool) -> None:
        """Have windows take in the step: those that need its numbers on the host, or the others."""

    def look_at_windows(self, frame: StepFrame) -> None:
        """Make the values that windows had if the step ended now; nothing else changes."""

    def values(self, frame: StepFrame, is_final: bool) -> Sequence[StreamValues]:
        """The values of the due probes, which count those that are final."""


@dataclass(slots=True)
class Collected:
    """The values of one name at one place in one step."""

    combine: Combine
    values: list[Number] = field(default_factory=list)

    def copy(self) -> Collected:
        """As it is now."""
        return Collected(self.combine, [*self.values])

    @property
    def value(self) -> float:
        """One number; once the values are on the host."""
        return COMBINE[self.combine]([float(value) for value in self.values])


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
    """

    __slots__ = (
        "_asides",
        "_came",
        "_elsewhere",
        "_handles",
        "_is_here",
        "_loose",
        "_own",
        "_parts",
        "_pass",
        "arrays",
        "arrivals",
        "awaits_gradient",
        "batch",
        "begun",
        "calls",
        "closed",
        "collected",
        "counts",
        "has_copies",
        "has_failures",
        "has_returned",
        "heard",
        "loss",
        "of_state",
        "of_step",
        "on_device",
        "passes",
        "plan",
        "recorded_beside",
        "scalars",
        "seconds",
        "states",
        "step",
        "time_ms",
    )

    def __init__(
        self, step: int, plan: StepPlan | None = None, n_states: int = 0, n_counts: int = 0
    ) -> None:
        self.step = step
        self.plan = plan
        self.time_ms = time.time_ns() // 1_000_000
        self.begun = self.heard = time.perf_counter()
        """When it was opened; when a hook last had something of it."""
        self.seconds = 0.0
        """Time spent in our own code during this step."""
        self.closed = False
        self.has_failures = self.has_copies = False  # in place of states, to be measured
        self.on_device = False
        """Something measured waits on an accelerator."""
        self.scalars: dict[str, Number] = {}
        """What the user logged."""
        self.arrays: dict[tuple[str, str], Any] = {}
        """Arrays that the user logged, by place and name."""
        self.loss: Number | None = None
        """What `backward()` was called on, of the passes that were applied."""
        self.recorded_beside: frozenset[str] = frozenset()
        """Names of those that are recorded of a state; here quantities may read them."""
        self.of_state = False
        """It holds what was logged of the state before the step, and nothing of the step."""
        self.collected: dict[tuple[str, str], Collected] = {}
        """What the model gave of itself, by place and name."""
        self._handles: list[Removable] = []
        self.batch: dict[str, Tensor] = {}
        """What the loop has handed over of the batch that is trained now."""
        self.of_step: dict[str, Any] = {}
        """Values of the step as a whole, by feature."""
        self.states: list[Any] = [None] * n_states
        self.calls: list[int] = [0] * n_counts
        self.arrivals: list[int] = [0] * n_counts
        """Gradients that came back to each place, or were accumulated in each parameter."""
        self.passes = Passes()
        self.awaits_gradient = False
        """Something of it has a hook that hears of a backward."""
        self.has_returned = self.counts = False
        """Of a part: the call was not broken off; it counts in any case."""
        self._pass, self._is_here = NO_PASS, False
        self._elsewhere: StepFrame | None = None
        self._came: list[Pass] = []
        self._own: Together | None = None
        self._asides: dict[Together, StepFrame] = {}
        self._parts: list[StepFrame] = []
        self._loose: StepFrame | None = None

    def logged(self, names: Set[str]) -> Set[str]:
        """Those of some names that were logged of the step."""
        return (names & self.scalars.keys()) - self.recorded_beside

    def begin_part(self) -> StepFrame:
        """A frame for what is read of one call of the model, until it is known whether it counts.

        It is closed with the step.
        """
        part = self._part()
        self._parts.append(part)
        return part

    def loose_part(self) -> StepFrame:
        """The frame for what is read of anything else: of modules called alone, of recomputations.

        It counts.
        """
        if self._loose is None:
            self._loose = self.begin_part()
            self._loose.counts = True
        return self._loose

    def receiver(self) -> StepFrame | None:
        """Where the gradient that comes now is kept; None where it is not the training's.

        Those of the first passes that accumulate are kept here. What others bring, and what
        `torch.autograd.grad` returns, lies aside until it is known what of it counts.
        """
        now = _running_pass()
        if now != self._pass:
            self._receive(self.passes.running())
            self._pass = now
        return self if self._is_here else self._elsewhere

    def _receive(self, one: Pass) -> None:
        if one not in self._came:
            self._came.append(one)
        self._is_here, self._elsewhere = False, None
        if one.kind is BackwardKind.DIFFERENTIATED:
            return
        if self._own is None and one.kind is BackwardKind.ACCUMULATED:
            self._own = one.together
        if one.together is self._own:
            self._is_here = True
            return
        if one.together not in self._asides:
            self._asides[one.together] = self._part()
        self._elsewhere = self._asides[one.together]

    @property
    def has_gradient(self) -> bool:
        """Of a part: a backward has come to it, gone through, and was not in vain."""
        return any(one.has_ended and not self.passes.is_discarded(one) for one in self._came)

    @property
    def is_discarded(self) -> bool:
        """Of a part: every backward that has come to it was in vain."""
        return bool(self._came) and all(map(self.passes.is_discarded, self._came))

    def _part(self) -> StepFrame:
        part = StepFrame(self.step, self.plan, len(self.states), len(self.calls))
        part.batch, part.passes = self.batch, self.passes
        return part

    @property
    def is_empty(self) -> bool:
        """Nothing is recorded of it: nothing was due, nothing logged."""
        if self.scalars or self.arrays or self.collected:
            return False
        return not self.reads

    @property
    def reads(self) -> bool:
        """Something is due in it, or takes in every step."""
        return self.plan is not None and bool(self.plan.due or not self.plan.are_light)

    @property
    def n_rows(self) -> int:
        """Rows of the record that it comes to: of its due probes, or of what was logged."""
        return max(1, self.plan.n_rows if self.plan is not None else 0)

    def settled(self) -> StepFrame:
        """A copy with all that counts now; the frame goes on being filled."""
        here = copy.copy(self)
        here.states = [*self.states]
        here._parts = [copy.copy(part) for part in self._parts]
        here.collected = {key: one.copy() for key, one in [*self.collected.items()]}
        here.settle()
        return here

    def settle(self) -> None:
        """Decide what of the step counts, and pool it."""
        self._settle_passes()
        parts, self._parts, self._loose = self._parts, [], None
        for part in parts:
            part._settle_passes()
            self._add_costs(part)
        for nth, part in enumerate(_counting(parts)):
            self._pool(part, is_first=nth == 0)

    def _settle_passes(self) -> None:
        """Keep the gradients of the passes that count."""
        asides, self._asides = self._asides, {}
        for aside in asides.values():
            self._add_costs(aside)
        if self.plan is None or not (asides or self._own):
            return
        if self._own is not None and not self.passes.counts(self._own):
            gone = self.plan.of_gradients
            self.states = [None if i in gone else s for i, s in enumerate(self.states)]
            self.arrivals = [0] * len(self.arrivals)
        for together, aside in asides.items():
            if self.passes.counts(together):
                self.states = [*self.states]
                self.plan.pool(self, aside, follows=False)

    def _pool(self, part: StepFrame, is_first: bool) -> None:
        if is_first or self.plan is None:
            self._take(part)
            self.calls = [*part.calls]
        else:
            self.plan.pool(self, part, follows=True)
            self.calls = [*map(operator.add, self.calls, part.calls)]
        for key, theirs in part.collected.items():
            self.collected.setdefault(key, Collected(theirs.combine)).values.extend(theirs.values)

    def _take(self, part: StepFrame) -> None:
        """Take what a part has read where nothing has been read yet."""
        pairs = zip(self.states, part.states, strict=True)
        self.states = [found if own is None else own for own, found in pairs]
        mine, theirs = self.arrivals, part.arrivals
        self.arrivals = [*map(operator.add, mine, theirs)] if any(mine) else [*theirs]

    def _add_costs(self, part: StepFrame) -> None:
        """What a part has cost it has cost, whether it counts or not."""
        self.seconds += part.seconds
        self.has_failures |= part.has_failures
        self.on_device |= part.on_device

    def hook(self, tensor: Tensor, read: Callable[[Tensor], None]) -> None:
        """Have a gradient read; a leaf outlives its graph, so that its hook ends with the step."""
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
        """Keep a value that the model gave of itself."""
        pooled = self.collected.setdefault((place, name), Collected(combine))
        pooled.values.append(value)
        if isinstance(value, Tensor):
            self.on_device = True

    def blame(self, probe: Probe, error: Exception) -> None:
        """A reading failed: count it against the probe; a tensor without values is only a gap."""
        if isinstance(error, UnreadableError):
            probe.gap = str(error)
        else:
            probe.failed(error, self.step)
            self.has_failures = True

    def blame_all(self, probes: Iterable[Probe], error: Exception) -> None:
        """A reading that several probes share failed."""
        for probe in probes:
            self.blame(probe, error)


def _counting(parts: list[StepFrame]) -> list[StepFrame]:
    """The calls of the model that are the step's.

    Those that a gradient came back to, unless it was cleared. Where none did those that returned:
    who trains without a backward, or from something that the model keeps, has no others.
    """
    if len(parts) == 1:
        return parts
    asked = [part for part in parts if not part.counts and not part.is_discarded]
    with_gradient = [part for part in asked if part.has_gradient]
    found = with_gradient or [part for part in asked if part.has_returned] or asked
    return [part for part in parts if part.counts or part in found]
