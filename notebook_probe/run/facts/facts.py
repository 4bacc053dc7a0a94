"""All facts of one run: when each is looked at, and what was found."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn
from torch.optim import Optimizer

from notebook_probe.alerts import Rules
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.loss import backwards
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.live_options import LiveOptions, live_options
from notebook_probe.probes.step.optimizer_steps import listen, running
from notebook_probe.record.format.notes import TRAINED
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.whole_steps import WholeSteps
from notebook_probe.run.facts.calls.sampled import SampledCalls
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.equal_units import EqualUnits
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.later import Later
from notebook_probe.run.facts.losses.loss_graph import LossGraph
from notebook_probe.run.facts.nonfinite import NonfiniteOrigin
from notebook_probe.run.facts.norms import NormMomentum
from notebook_probe.run.facts.ownership import ownership_text
from notebook_probe.run.facts.parameters import WhoTrains
from notebook_probe.run.facts.progress import FactsOfProgress
from notebook_probe.run.facts.ranks.comparing import RankFacts
from notebook_probe.run.facts.ranks.publishing import OwnReplica
from notebook_probe.run.facts.rates import Rates, is_large
from notebook_probe.run.facts.reach import GradientReach
from notebook_probe.run.facts.undone import UndoneUpdates
from notebook_probe.run.looks.kept_batches import KeptBatches

__all__ = ["Facts"]

RISES, JUMPS = "early_divergence", "loss_spike"
"""Rules about a loss that is above its first, and above its last ones."""


@dataclass(slots=True)
class _Rest:
    """Updates of one optimizer that need no look, while its learning rates stay as they are.

    Attributes
    ----------
    options : LiveOptions
        Options of the optimizer, which count its updates.
    first : int
        Number of the optimizer's update that is its first one here.
    due : int
        Number, from there on, of the update to look at next.
    rates : list or None
        Learning rates of the update that was looked at last; None of rates that are tensors.
    """

    options: LiveOptions
    first: int
    due: int = 0
    rates: list[Any] | None = None

    @property
    def n(self) -> int:
        """Number of the update that has begun last, from the first one here on."""
        return self.options.n_updates - self.first

    @property
    def is_unmoved(self) -> bool:
        """True if the learning rates are those of the update that was looked at last."""
        return not self.options.moves and self.rates == self.options.rates

    @property
    def n_left(self) -> int:
        """Number of updates until the one to look at next."""
        return self.due - self.n


class Facts:
    """Facts of execution of one run.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    observer : Observer
    writer : RecordWriter
    rules : Rules
        Rules of the run; the rules of facts have no series.
    whole : WholeSteps
        Asked to measure the steps after each finding.
    batches : KeptBatches
        Copies batches of unusual losses.
    """

    can_be_interrupted = True
    """An interrupt loses at most a fact of one step."""
    rests_until = 0

    def __init__(
        self,
        model: nn.Module,
        observer: Observer,
        writer: RecordWriter,
        rules: Rules,
        whole: WholeSteps,
        batches: KeptBatches,
    ) -> None:
        self._observer, self._findings = observer, FactFindings(rules, whole.ask)
        self._writer, self._has_told = writer, False
        self._later = Later()
        context = FactContext(weakref.ref(model), observer, self._findings, self._later)
        self._spend = context.spend
        self._graph = LossGraph(context)
        self._who, self._undone = WhoTrains(context), UndoneUpdates(context)
        self._rates = Rates(self._findings, writer.first_step if writer.continued else 0)
        self._reach = GradientReach(context, self._graph)
        self._replica = OwnReplica(context)
        self._calls = SampledCalls(context, self._replica.called)
        self._norms, self._units = NormMomentum(context), EqualUnits(context)
        self._ranks = RankFacts(self._replica, writer, self._findings)
        wake = weakref.WeakMethod(self._look_again)
        self._origin = NonfiniteOrigin(context, wake, batches, self._graph.jumped)
        self._progress = FactsOfProgress(context, writer.source, self._graph)
        self._resting: weakref.WeakKeyDictionary[Optimizer, _Rest] = weakref.WeakKeyDictionary()
        self._rests: list[_Rest] = []
        self._ends: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Listen to optimizers and backward passes from now on."""
        ends = listen(self), backwards.listen(self._graph), self._graph.close
        self._ends = [*ends, self._origin.begin()]
        self._observer.updates.wrote_nothing = partial(_pass_on, weakref.WeakMethod(self._idled))
        self._calls.begin()

    def close(self) -> None:
        """Take everything off."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._calls.close()
        self._ranks.prepare_last_look()
        self._progress.prepare_last_look()
        self._reach.close()

    def look(self, step: int) -> bool:
        """Look at the model before a step, on the training thread; return whether to look again.

        Later changes are noticed at a look that the gate takes once in a while.
        """
        optimizers, attempt = self._observer.updates.optimizers, self._findings.attempt
        was_settled = self._who.is_settled
        attempt(self._who.look, step, optimizers, self._observer.steps.model_map)
        if self._who.is_settled and not was_settled:
            attempt(self._note_ownership, optimizers)
        attempt(self._reach.look, step, optimizers)
        attempt(self._norms.look, step)
        attempt(self._units.look, step, optimizers)
        self._graph.look(step)
        attempt(self._later.judge)
        is_sampled = self._replica.look(step) | self._calls.look(step)
        return (is_sampled or self._who.thawed.is_in_doubt) or (
            bool(optimizers) and not (self._who.is_settled and self._reach.is_over)
        )

    def _note_ownership(self, optimizers: Sequence[Optimizer]) -> None:
        """Keep with the record which modules are in which parameter groups."""
        text = ownership_text(self._observer.steps.model_map.modules, optimizers)
        self._writer.annotate(**{TRAINED: text})

    def take(self) -> list[tuple[str, Onset]]:
        """Return and forget the findings; on the writer's thread."""
        self._findings.attempt(self._later.judge)
        self._findings.attempt(self._rates.judge, self._observer.clock.step)
        self._findings.attempt(self._progress.look)
        self._findings.attempt(self._ranks.look)
        problem = self._findings.problem
        if problem and not self._has_told:
            self._has_told = True
            self._writer.event(self._observer.clock.step, "error", f"facts are off: {problem}")
        return self._findings.take()

    def may_be_meant(self, rule: str, step: int) -> bool:
        """Return whether trouble of a kind is expected at a step.

        A range test of the learning rate ends in it, and the loss of an attack, or of a contrast
        with keys that are random at first, may rise from its first value. A batch of classes none
        of which came before is another task.
        """
        is_new = rule == JUMPS and bool({step - 1, step} & self._graph.targets.new_at)
        return is_new or step in self._rates.tried or (rule == RISES and self._graph.may_rise)

    # ---------------------------------------------------------------- optimizers

    def update_comes(self, optimizer: Optimizer) -> None:
        """Implement the Listener, which is called only where an update may need a look.

        A scheduler changes the rates of every update: they are noted, and nothing else is done.
        """
        rest, steps = self._resting.get(optimizer), self._observer.steps
        if (
            rest is None
            or rest.rates is None
            or (n_left := rest.n_left) <= 0
            or len(self._rests) > 1
            or self._origin.found is not None
            or self._replica.is_shared
            or steps.ignores_updates
        ):
            self.gradients_ready(optimizer)
            return
        rates: list[Any] = [group.get("lr") for group in optimizer.param_groups]
        if rates != rest.rates:
            if {*map(type, rates)} != {float} or is_large(rest.rates, rates):
                self.gradients_ready(optimizer)
                return
            self._rates.note(optimizer, rates, self._observer.clock.step)
            rest.rates = rates
        self.rests_until = running.now.number + n_left

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """Implement the Listener: look at what is about to be applied."""
        if self._origin.found is not None and self._is_ours(optimizer):
            self._findings.attempt(self._origin.update_comes, optimizer)
        rest = self._resting.get(optimizer)
        if rest is not None and rest.n_left > 0 and rest.is_unmoved:
            return
        if self._is_ours(optimizer):
            begun = time.perf_counter()
            if rest is None:
                options = live_options(optimizer)
                rest = self._resting[optimizer] = _Rest(options, options.n_updates)
                self._rests = [*self._resting.values()]
            self._findings.attempt(self._look_at_update, optimizer, rest)
            self._spend(time.perf_counter() - begun)

    def _look_at_update(self, optimizer: Optimizer, rest: _Rest) -> None:
        step, n = self._observer.clock.step, rest.n
        rates = [group.get("lr") for group in optimizer.param_groups]
        if rates != rest.rates:
            self._rates.gradients_ready(optimizer, step)
        if self._replica.is_shared:
            self._replica.updates()
        due = self._undone.gradients_ready(optimizer, n, step)
        due = min(due, self._who.gradients_ready(optimizer, n, step))
        is_plain = {*map(type, rates)} <= {float, int}
        rest.rates = rates if is_plain else None
        rest.due = due if is_plain else n + 1

    def step_ends(self, optimizer: Optimizer) -> None:
        """Implement the Listener: look at what was applied, and rest until something is due."""
        awaits = self._who.before or self._who.versions or self._undone.awaits_end
        if awaits and self._is_ours(optimizer):
            begun = time.perf_counter()
            self._findings.attempt(self._who.update_ends, optimizer, self._observer.clock.step)
            self._findings.attempt(self._undone.update_ends, optimizer)
            self._spend(time.perf_counter() - begun)
        if self._origin.found is None:
            n_left = min([rest.n_left for rest in self._rests], default=1)
            self.rests_until = running.now.number + max(1, n_left)

    def _idled(self, optimizer: Optimizer) -> None:
        """Note an update that has not written, whatever it is."""
        self._findings.attempt(self._look_at_idle, optimizer)

    def _look_at_idle(self, optimizer: Optimizer) -> None:
        """Look at the next update, too, if an optimizer has stopped to write."""
        rest = self._resting.get(optimizer)
        if rest is not None and self._who.wrote_nothing(optimizer, rest.n):
            rest.due = self.rests_until = 0

    def _look_again(self) -> None:
        """Look at the next update: there is something to tell if it comes."""
        self.rests_until = 0

    def _is_ours(self, optimizer: Optimizer) -> bool:
        observer = self._observer
        return not observer.steps.ignores_updates and observer.updates.has_met(optimizer)


def _pass_on(method: weakref.WeakMethod[Callable[[Optimizer], None]], optimizer: Optimizer) -> None:
    """Call a method, unless its object is gone: those that hold this are held by the object."""
    call = method()
    if call is not None:
        call(optimizer)
