"""Origin of a loss that is NaN or infinite, found by calling the model again before the update.

Nothing has to be measured for it: the inputs of the calls of a step are kept until their backward,
so that the origin is exact whatever the schedules are.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.graph.building import in_words
from notebook_probe.probes.loss import backwards
from notebook_probe.probes.loss.kept_calls import MOST_CALLS, KeptCall
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.class_targets import are_ignored
from notebook_probe.run.facts.replayed_call import ReplayedCall, replayed, share_of_nan
from notebook_probe.run.looks.kept_batches import KeptBatches

__all__ = ["NonfiniteOrigin"]

NOTHING: Mapping[str, object] = MappingProxyType({})

MOST_REPLAYS = 8
"""Maximum number of losses that are followed; most of them lead to no update."""


class NonfiniteOrigin:
    """A `LossChecker` that finds the first module with outputs that are not finite.

    Parameters
    ----------
    context : FactContext
        Its observer keeps the calls.
    wake : weak reference to a callable
        Asks for `update_comes` at the next update.
    batches : KeptBatches
        Copies batches whose loss is not finite, or has jumped.
    jumped : callable
        Receives each finite loss that has jumped.
    """

    def __init__(
        self,
        context: FactContext,
        wake: weakref.WeakMethod[Callable[[], None]],
        batches: KeptBatches,
        jumped: Callable[[Tensor], None],
    ) -> None:
        self._jumped = jumped
        self._wake, self.usual = wake, batches
        self._model, self._observer = context.model, context.observer
        self._findings, self._spend = context.findings, context.spend
        self.calls = self._observer.calls.by_thread
        self._step, self._n_replays = -1, 0
        self._first_step = self._observer.clock.step
        self.found: Callable[[], None] | None = None
        """Reports the origin, once an update comes of it."""

    def begin(self) -> Callable[[], None]:
        """Check every loss from now on, and return a function to stop it."""
        model = self._model()
        if model is None or not self._findings.follows("nonfinite_output"):
            return lambda: None
        # The loss of a model on an accelerator is known when its weights have changed already.
        values = [slot.get() for slot in self._observer.steps.model_map.slots("", below=True)]
        self._observer.calls.wanted = all(value is None or value.is_cpu for value in values)
        return backwards.check_losses(self)

    def is_unusual(self, loss: Tensor, calls: list[KeptCall]) -> None:
        """Implement the LossChecker: copy the batch, and find where NaN began."""
        is_finite = math.isfinite(loss.item())
        # The limit is for NaN, which may come in every step from some step on.
        if self._observer.steps.ignores_updates or (
            self._n_replays >= MOST_REPLAYS and not is_finite
        ):
            return
        begun = time.perf_counter()
        self.usual.copy(self._observer.clock.step, loss, calls)
        self._spend(time.perf_counter() - begun)
        if not is_finite:
            self._not_finite(loss, calls)
        else:
            self._findings.attempt(self._look_at_jump, loss, calls)

    def _look_at_jump(self, loss: Tensor, calls: Sequence[KeptCall]) -> None:
        """Look for another task, and for inputs that are all zero."""
        self._jumped(loss)
        if calls and _is_blank(calls[-1].tensors):
            self._findings.say("blank_batch", self._observer.clock.step)

    def _not_finite(self, loss: Tensor, calls: list[KeptCall]) -> None:
        model = self._model()
        if model is None:
            return
        begun, step = time.perf_counter(), self._observer.clock.step
        if self.found is not None and step == self._step:  # by an earlier backward of the step
            return
        self._step, self._n_replays = step, self._n_replays + 1
        if are_ignored(loss):
            self._findings.say("all_targets_ignored", step)
        try:
            strong = [call.strong() for call in calls]
            known = [call for call in strong if call is not None]
            why = _obstacle(known, len(calls)) or self._locate(model, loss, known, step)
        except Exception as error:  # an error of the model: training must continue
            why = f"the model cannot be called again: {in_words(error)}"
            self._observer.calls.draws = True  # perhaps it was for this
        if why:
            self._say("nonfinite_not_located", step, words={"loss": f"{loss.item()}", "why": why})
        self._spend(time.perf_counter() - begun)

    def _locate(self, model: nn.Module, loss: Tensor, calls: list[KeptCall], step: int) -> str:
        """Report the origin; return why it is not known, in words."""
        n_modules, largest = 0, 0.0
        for call in calls:
            given = [call.args, dict(call.kwargs)]
            if share := share_of_nan(given):
                self._say("nonfinite_batch", step, words={"share": f"{share:.2%}"})
                return ""
            found = replayed(model, call, self._observer.steps.model_map)
            n_modules, largest = n_modules + len(found.paths), max(largest, found.largest)
            # Before the first step no loss was seen that an update could have followed.
            if step > self._first_step and self._say_of_weights(found, step):
                return ""
            if found.origin is not None:
                shares = {"nonfinite_fraction": found.fraction, "finite_before": found.n_finite}
                self._say("nonfinite_output", step, found.origin, shares)
                return ""
        words = {"loss": f"{loss.item()}", "n": n_modules, "largest": f"{largest:.2g}"}
        self._say("nonfinite_from_loss", step, words=words)
        return ""

    def _say_of_weights(self, found: ReplayedCall, step: int) -> bool:
        """Report weights that an earlier update has made NaN; return whether there are any."""
        modules = self._observer.steps.model_map.modules
        owners = [path for path in found.paths if _parameters(modules.get(path))]
        bad = [path for path in owners if not _are_finite(modules.get(path))]
        if not bad:
            return False
        # A gradient goes backward: it was finite until it came to the last of these layers.
        place = "" if len(bad) == len(owners) else bad[-1]
        words = {"n": len(bad), "n_layers": len(owners), "before": step - 1}
        self._say("nonfinite_update", step, place, words)
        return True

    def _say(
        self, name: str, step: int, place: str = "", words: Mapping[str, object] = NOTHING
    ) -> None:
        self.found = partial(self._findings.say, name, step, [place], words=words)
        if (wake := self._wake()) is not None:
            wake()

    def update_comes(self, optimizer: Optimizer) -> None:
        """Report what was found in this step if the gradients are not finite, either.

        A loop may leave such a step out, and a gradient scaler does. Of several optimizers the
        first one may have finite gradients.
        """
        found, groups = self.found, optimizer.param_groups
        if self._observer.clock.step != self._step:
            self.found = None
            return
        given = [one.grad for group in groups for one in group["params"] if one.grad is not None]
        if found is not None and not all(map(_is_finite, given)):
            found()
            self.found = None
            self._n_replays = MOST_REPLAYS  # the weights are NaN now, and so are later losses


def _obstacle(calls: list[KeptCall], n_calls: int) -> str:
    """Return why ``n_calls`` cannot be made again, in words; empty if these are all, and can."""
    if n_calls >= MOST_CALLS:
        return f"the step has {MOST_CALLS} forwards or more"
    if len(calls) < n_calls:
        return "inputs of an earlier forward of the step no longer exist"
    if not all(call.is_unchanged for call in calls):
        return "the inputs were changed in place after the forward"
    return "a forward may wait for the other processes" if _is_distributed() else ""


def _is_blank(tensors: Sequence[Tensor]) -> bool:
    """Return whether all numbers of a batch are zero; its last call holds its inputs."""
    numbers = [one for one in tensors if one.is_floating_point()]
    return bool(numbers) and not any(bool(readable(one).any()) for one in numbers)


def _is_distributed() -> bool:
    group = torch.distributed
    return group.is_available() and group.is_initialized() and group.get_world_size() > 1


def _parameters(module: nn.Module | None) -> list[Tensor]:
    return [] if module is None else [*module.parameters(recurse=False)]


def _are_finite(module: nn.Module | None) -> bool:
    return all(map(_is_finite, _parameters(module)))


def _is_finite(tensor: Tensor) -> bool:
    return bool(readable(tensor).isfinite().all())
