"""Modules that no gradient reaches: cut off on the way to the loss, or not used by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.loss_graph import LossGraph
from notebook_probe.run.facts.rates import known_rate
from notebook_probe.source_lines import user_line

__all__ = ["GradientReach"]

RULE = "cut_off"


class GradientReach:
    """Facts about layers that are called and in an optimizer, and get no gradient; found once.

    After some steps without a gradient for a layer, one forward is followed, function by function,
    and the graph of one loss is searched for the layer's parameters.

    Parameters
    ----------
    context : FactContext
    graph : LossGraph

    Attributes
    ----------
    is_over : bool
        The one step that is followed is over.
    """

    def __init__(self, context: FactContext, graph: LossGraph) -> None:
        self._model, self._findings, self._graph = context.model, context.findings, graph
        self._first = context.observer.updates.first_gradients
        self._last_call = context.observer.taps.last_call
        self._first_step: int | None = None
        self._candidates: dict[str, list[int]] | None = None
        self._others: list[str] = []
        self._trace: _ForwardTrace | None = None
        self._since = 0
        self.is_over = False

    def look(self, step: int, optimizers: Sequence[Optimizer]) -> None:
        """Look at the model before a step."""
        model = self._model()
        if self.is_over or model is None:
            return
        if self._candidates is None:
            self._first_step = step if self._first_step is None else self._first_step
            if optimizers and step - self._first_step >= self._findings.threshold(RULE, "after"):
                self._begin(model, step, optimizers)
        elif step > self._since + 1:
            self._end(step)

    def close(self) -> None:
        """Take all hooks off."""
        self.is_over = True
        if self._trace is not None:
            self._trace.remove()

    def _begin(self, model: nn.Module, step: int, optimizers: Sequence[Optimizer]) -> None:
        groups = [group for one in optimizers for group in one.param_groups]
        rates = {
            id(one): known_rate(g) if "lr" in g else 1.0 for g in groups for one in g["params"]
        }
        self._candidates, self._since = {}, step
        for path, module in model.named_modules():
            own = [one for one in module.parameters(recurse=False) if one.requires_grad]
            if not own or self._last_call(path) < 0:
                continue
            if any(map(self._first.has_reached, own)):
                self._others.append(path)
            elif all(rates.get(id(one)) for one in own):
                self._candidates[path] = [*map(id, own)]
        self._first.end()
        if not self._candidates:
            self.is_over = True
            return
        self._graph.wanted = {key for keys in self._candidates.values() for key in keys}
        if self._others and not is_compiled(model):
            self._trace = _ForwardTrace(model, [*self._candidates], self._others)

    def _end(self, step: int) -> None:
        """Report the findings of the followed step."""
        self.is_over = True
        trace, found = self._trace, self._candidates or {}
        if trace is not None:
            trace.remove()
        reached = self._graph.reached or set()
        cleared = [path for path, keys in found.items() if reached & {*keys}]
        rest = [path for path in found if path not in cleared]
        lines = trace.lines if trace is not None else {}
        cut = [path for path in rest if path in lines or not self._others]
        since, n_steps = self._first_step or 0, self._since - (self._first_step or 0)
        words: dict[str, object] = {"n_steps": n_steps}
        if cut:
            line = next((lines[path] for path in cut if path in lines), "")
            where = f"at {line}" if line else "by detach(), no_grad(), argmax, .item() or numpy"
            self._findings.say(RULE, self._since, cut, since=since, words=words | {"where": where})
        unused = [path for path in rest if path not in cut]
        if unused:
            self._findings.say("unused_output", self._since, unused, since=since, words=words)
        if cleared and not self._others:
            self._findings.say("gradients_cleared_early", self._since, since=since, words=words)
        elif cleared:
            self._findings.say(
                "gradient_taken_away", self._since, cleared, since=since, words=words
            )


class _ForwardTrace:
    """Trace of the outputs of some modules through one training forward.

    Attributes
    ----------
    lines : dict of str to str
        Source line at which the gradient is lost between a module and one that trains, by module.
    """

    def __init__(self, model: nn.Module, cut: Sequence[str], others: Sequence[str]) -> None:
        self.lines: dict[str, str] = {}
        self._mode: _Following | None = None
        self._is_done = False
        modules = dict(model.named_modules())
        self._handles: list[RemovableHandle] = [
            model.register_forward_pre_hook(self._enter),
            model.register_forward_hook(self._leave, always_call=True),
        ]
        for path in cut:
            mark = modules[path].register_forward_hook(_Marks(self, path))
            self._handles.append(mark)
        for path in others:
            self._handles.append(modules[path].register_forward_pre_hook(self._arrive))

    def remove(self) -> None:
        """Take all hooks off."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()

    def _enter(self, module: nn.Module, args: Any) -> None:
        if self._mode is None and not self._is_done and module.training:
            self._mode = _Following()
            self._mode.__enter__()

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._mode is not None:
            mode, self._mode, self._is_done = self._mode, None, True
            mode.__exit__(None, None, None)
            mode.known.clear()

    def mark(self, path: str, output: Any) -> None:
        """Follow the outputs of a module from here on."""
        if self._mode is not None:
            for one in tensors_of(output):
                lost = "" if one.requires_grad else user_line()
                self._mode.known[id(one)] = one, {path: lost}

    def _arrive(self, module: nn.Module, args: Any) -> None:
        """Note what arrives, without a gradient, at a module that trains."""
        if self._mode is not None:
            for one in tensors_of(args):
                _, origins = self._mode.known.get(id(one), (None, {}))
                self.lines.update({path: line for path, line in origins.items() if line})


class _Marks:
    """Hook that marks the output of one module."""

    def __init__(self, trace: _ForwardTrace, path: str) -> None:
        self._trace, self._path = trace, path

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        self._trace.mark(self._path, output)


class _Following(TorchFunctionMode):
    """Carries marks of tensors from the arguments of each function to its results."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, tuple[Tensor, dict[str, str]]] = {}
        """Tensor by identity, with the modules that it is made of and the line of each loss."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        origins = {k: v for path in self._marks_in([args, kwargs]) for k, v in path.items()}
        if origins:
            for one in tensors_of(result):
                lost = "" if one.requires_grad else user_line()
                self.known[id(one)] = one, {path: old or lost for path, old in origins.items()}
        return result

    def _marks_in(self, given: Any) -> Iterator[dict[str, str]]:
        for one in tensors_of(given):
            if id(one) in self.known:
                yield self.known[id(one)][1]
