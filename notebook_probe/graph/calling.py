"""The graph of one real call: torch's functions in their order, linked by tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from notebook_probe.graph.draft import Draft, described
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.listening import Heard
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.containers import copied, tensors_of

__all__ = ["called"]


def called(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], heard: Heard) -> Graph:
    """Return the graph of one call, inside `undisturbed`, on copies of what it may write to.

    Raises
    ------
    Exception
        Any error of the model.
    """
    draft = Draft(ModelMap(model))
    links = _Links(draft, heard)
    parameters, buffers = (
        copied(dict(model.named_parameters())),
        copied(dict(model.named_buffers())),
    )
    args, kwargs = copied(args), copied(kwargs)
    for name, value in _named(model, args, kwargs):
        for tensor in tensors_of(value):
            links.given_by(tensor, draft.add("input", name, given=described(tensor)))
    links.name("parameter", parameters)
    links.name("buffer", buffers)
    with links:
        output = functional_call(model, {**parameters, **buffers}, args, kwargs)
    for tensor in tensors_of(output):
        draft.add("output", "output", given=described(tensor), sources=links.sources([tensor]))
    return draft.finish("called", heard.calls)


class _Links(TorchFunctionMode):
    """Mode that notes which node gives each tensor, without keeping the tensor alive."""

    def __init__(self, draft: Draft, heard: Heard) -> None:
        super().__init__()
        self._draft, self._heard = draft, heard
        # By identity, as tensors compare elementwise; weakly, as the call frees them while it runs.
        self._givers: Any = WeakIdKeyDictionary()
        self._named: Any = WeakIdKeyDictionary()
        heard.on_output = self._module_gave

    def name(self, kind: Any, tensors: dict[str, Tensor]) -> None:
        """Tensors that are a node once something takes them."""
        for name, tensor in tensors.items():
            self._named[tensor] = kind, name

    def given_by(self, tensor: Tensor, place: int) -> None:
        self._givers[tensor] = place

    def sources(self, tensors: list[Tensor]) -> list[int]:
        return [self._giver(tensor) for tensor in tensors]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if gives := tensors_of(result):
            name = _name(func)
            self._note("operator", name, name, [*args, *kwargs.values()], gives)
        return result

    def _note(self, kind: Any, name: str, op: str, takes: Any, gives: list[Tensor]) -> None:
        module = self._heard.stack[-1] if self._heard.stack else ""
        sources = self.sources(tensors_of(takes))
        place = self._draft.add(kind, name, op, module, described(gives[0]), sources)
        for tensor in gives:
            self._givers[tensor] = place

    def _module_gave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Add an operator for a module that computed without torch's functions."""
        unknown = [one for one in tensors_of(output) if not self._is_known(one)]
        if unknown:
            name = type(module).__name__
            self._note("module", name, name, args, unknown)

    def _is_known(self, tensor: Tensor) -> bool:
        return tensor in self._givers or tensor in self._named or tensor._base in self._givers

    def _giver(self, tensor: Tensor) -> int:
        """Return the node that made a tensor; a tensor without one is a constant."""
        if tensor in self._givers:
            return int(self._givers[tensor])
        base = tensor._base
        if base is not None and (base in self._givers or base in self._named):
            return self._giver(base)
        kind, name = self._named.get(tensor, ("constant", "constant"))
        module, _, own = name.rpartition(".")
        place = self._draft.add(kind, name.replace(".", "_"), own, module, described(tensor))
        self._givers[tensor] = place
        return place


def _named(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a call with the names in its forward."""
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    # A forward from C++, or one that takes anything: numbers serve as names.
    except (TypeError, ValueError):
        bound = {**{f"input_{place}": one for place, one in enumerate(args)}, **kwargs}
    yield from bound.items()


def _name(func: Callable[..., Any]) -> str:
    """``"add"`` for ``Tensor.__add__``, and ``"T"`` for reading that attribute."""
    name = getattr(func, "__name__", "") or type(func).__name__
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name
