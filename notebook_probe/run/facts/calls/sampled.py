"""Sampled calls of the model: the first ones, and rare ones later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn

from notebook_probe.alerts.rule import Severity
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.probes.step_sequence import LOOK_EVERY
from notebook_probe.run.facts.calls.batches import GivenBatches
from notebook_probe.run.facts.calls.casts import CastFollower, autocast_types
from notebook_probe.run.facts.calls.evaluations import DropoutFollower
from notebook_probe.run.facts.calls.lookups import LookupFollower
from notebook_probe.run.facts.calls.repeated import RepeatedEvaluations
from notebook_probe.run.facts.calls.spectral_norms import SpectralNorms
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.hooks import PilingHooks
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["SampledCalls"]

N_FIRST = 20
"""First steps, all of which are sampled; later those at which the gate is passed anyway."""


class SampledCalls:
    """Facts about what the model is given and what it does in single calls.

    Parameters
    ----------
    context : FactContext
    called : callable
        Is called when a sampled training call begins.
    """

    def __init__(self, context: FactContext, called: Callable[[], None]) -> None:
        self._observer, self._findings = context.observer, context.findings
        self._training = _TrainingCall(context, called)
        self._evaluation = _EvaluationCall(context)
        self._hooks = PilingHooks(context)
        self._first_step: int | None = None
        self._is_closed = False

    def begin(self) -> None:
        """Ask for an evaluation before the first step."""
        self._observer.samplers["evaluation"] = self._evaluation

    def look(self, step: int) -> bool:
        """Ask for the calls of a step that begins; return whether to at the next step, too."""
        if self._is_closed:
            return False
        if self._first_step is None:
            self._first_step = step
        is_early = step - self._first_step < N_FIRST
        if is_early or step % LOOK_EVERY == 0:
            self._findings.attempt(self._hooks.look, step)
            self._observer.samplers["training"] = self._training
            if not self._evaluation.is_over:
                self._observer.samplers["evaluation"] = self._evaluation
        return is_early

    def close(self) -> None:
        """Ask for no more calls."""
        self._is_closed = True
        self._observer.samplers.clear()
        self._training.close()


class _TrainingCall:
    """Sampler of training calls."""

    def __init__(self, context: FactContext, called: Callable[[], None]) -> None:
        self._observer, self._findings = context.observer, context.findings
        self._modules, self._batches, self._called = context.modules, GivenBatches(context), called
        self._first_output, self._tokens = context.first_output, context.given_tokens
        self._casts: CastFollower | None = None
        self._lookups: LookupFollower | None = None
        self._has_seen_casts = False

    def enters(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        step, attempt = self._observer.clock.step, self._findings.attempt
        attempt(self._called)
        attempt(self._batches.given, step, args, kwargs)
        if self._tokens.is_wanted:
            attempt(self._keep_tokens, args, kwargs)
        if not self._has_seen_casts:
            attempt(self._follow_casts, step)

    def _keep_tokens(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._tokens.keep(tensors_of([args, dict(kwargs)]))
        modules = self._modules()
        lookups = [one for one in modules.values() if isinstance(one, nn.Embedding)]
        if lookups and not is_compiled(modules[""]):
            self._lookups = LookupFollower(lookups, self._findings, self._tokens)

    def _follow_casts(self, step: int) -> None:
        types = autocast_types()
        if not types:
            return
        self._has_seen_casts = True
        modules = self._modules()
        root = modules[""]
        kinds = {one.device.type for one in root.parameters()}
        if kinds and not kinds & types.keys():
            on, kind = min(types), min(kinds)
            why = (
                f"it is on for {on!r}, and the model is on {kind!r}: "
                f"torch.autocast({kind!r}, dtype=torch.bfloat16)"
            )
            self._findings.say("autocast_ignored", step, words={"why": why})
        elif kinds and not is_compiled(root):
            self._casts = CastFollower(modules, types[min(kinds & types.keys())])

    def leaves(self, output: object) -> None:
        self.close()
        casts, self._casts = self._casts, None
        if casts is not None:
            self._findings.attempt(self._say_casts, casts)
        self._findings.attempt(self._first_output.keep, output)
        self._findings.attempt(self._batches.returned, output)

    def close(self) -> None:
        """Take the hooks on lookups off."""
        lookups, self._lookups = self._lookups, None
        if lookups is not None:
            lookups.remove()

    def _say_casts(self, casts: CastFollower) -> None:
        casts.remove()
        for dtype in {*casts.found.values()}:
            name = str(dtype).removeprefix("torch.")
            paths = [path for path, one in casts.found.items() if one == dtype]
            why = (
                f"these layers return {name}: their weights are of a type that it does not "
                f"convert: model.float()"
                if name == "float64"
                else f"these layers return {name}: autocast is off in them, or they call .float() "
                f"or a custom function; remove torch.autocast(..., enabled=False) if nothing "
                f"needs it"
            )
            severity: Severity = "warning" if name == "float64" else "remark"
            step = self._observer.clock.step
            words = {"why": why}
            self._findings.say("autocast_ignored", step, paths, severity=severity, words=words)


class _EvaluationCall:
    """Sampler of calls without gradients: one is followed, and many are compared."""

    def __init__(self, context: FactContext) -> None:
        self._model, self._findings = context.model, context.findings
        self._observer, self._norms = context.observer, SpectralNorms(context)
        self._repeated = RepeatedEvaluations(context)
        self._mode: DropoutFollower | None = None
        self._was_followed = False

    @property
    def is_over(self) -> bool:
        """True once no more evaluations are looked at."""
        return self._was_followed and self._repeated.is_over

    def enters(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        model, attempt = self._model(), self._findings.attempt
        if model is None or model.training:
            return
        if not self._was_followed:
            attempt(self._follow, model)
            attempt(self._norms.evaluated, self._observer.clock.upcoming)
        if not self._repeated.is_over:
            attempt(self._repeated.given, args, kwargs)

    def _follow(self, model: nn.Module) -> None:
        self._was_followed = True
        if not is_compiled(model):
            with uninterrupted:  # an interrupt in between would leave the mode on
                self._mode = DropoutFollower()
                self._mode.__enter__()

    def leaves(self, output: object) -> None:
        mode, self._mode = self._mode, None
        step = self._observer.clock.upcoming
        if mode is not None:
            self._findings.attempt(partial(mode.__exit__, None, None, None))
            self._repeated.drawn = mode.drawn
            if mode.name:
                words = {"name": mode.name, "place": mode.place, "share": f"{mode.share:.0%}"}
                self._findings.say("dropout_in_evaluation", step, words=words)
                self._repeated.stop()
        model = self._model()
        if model is not None and not self._repeated.is_over:
            self._findings.attempt(self._repeated.returned, model, output, step)
            self._observer.samplers["evaluation"] = self  # the next one, too
