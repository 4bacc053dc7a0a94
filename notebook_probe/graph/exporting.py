"""The graph that torch.export makes of a model, on fake tensors: no value is computed or copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.export.graph_signature import InputKind, InputSpec

from notebook_probe.graph.draft import Draft, described
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.listening import Heard
from notebook_probe.graph.nodes import NodeKind
from notebook_probe.graph.quiet import quiet
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["exported"]

KINDS: Mapping[InputKind, NodeKind] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
}


def exported(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], heard: Heard
) -> Graph:
    """Return the graph by torch.export of one call, inside `undisturbed`.

    Raises
    ------
    Exception
        Any reason against an export.
    """
    with quiet():
        # strict=False runs the code on fake tensors; the strict way refuses more of what Python
        # allows.
        program = torch.export.export(_Shell(model), args, kwargs, strict=False)
    draft, places = Draft(ModelMap(model)), dict[Any, int]()
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "output":
            for source in _outputs(node):
                given = described(source.meta.get("val"))
                draft.add("output", "output", given=given, sources=_of(source, places))
        elif node.op == "placeholder" and isinstance(value, Tensor):
            places[node] = _add_given(draft, node, specs[node.name])
        elif node.op == "call_function" and _holds_tensor(value):
            sources = [place for one in node.all_input_nodes for place in _of(one, places)]
            where = _name(node.target), _module_of(node)
            places[node] = draft.add("operator", node.name, *where, described(value), sources)
    return draft.finish("exported", _per_call(heard.calls))


class _Shell(nn.Module):
    """Wrap a model so that it returns a flat list of tensors.

    Parameters
    ----------
    model : nn.Module
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.inside = model

        @wraps(model.forward)  # so that inputs are called as they are in the model
        def forward(*args: Any, **kwargs: Any) -> list[Tensor]:
            return tensors_of(self.inside(*args, **kwargs))

        self.forward = forward


def _path(path: str) -> str:
    """Return the path in the model, from the path in its shell."""
    return path.partition(".")[2] if path.startswith("inside.") else ""


def _add_given(draft: Draft, node: torch.fx.Node, spec: InputSpec) -> int:
    """Add an input, parameter, buffer or constant; return its index."""
    given = described(node.meta["val"])
    if spec.kind == InputKind.USER_INPUT:
        return draft.add("input", node.name, given=given)
    path = _path(spec.target or "")
    module, _, own = path.rpartition(".")
    kind = KINDS.get(spec.kind, "constant")
    return draft.add(kind, path.replace(".", "_") or node.name, own, module, given)


def _outputs(node: torch.fx.Node) -> Sequence[torch.fx.Node]:
    """Return the nodes of the output tensors, in order."""
    return [one for one in node.all_input_nodes if _holds_tensor(one.meta.get("val"))]


def _of(node: torch.fx.Node, places: Mapping[Any, int]) -> Sequence[int]:
    return [places[node]] if node in places else []


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensor, value))
    return isinstance(value, Tensor)


def _module_of(node: torch.fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    return _path(str([*stack.values()][-1][0])) if stack else ""


def _name(target: Any) -> str:
    """``"conv2d"`` of ``aten.conv2d.default``."""
    packet = getattr(target, "overloadpacket", target)
    return str(getattr(packet, "__name__", packet))


def _per_call(calls: Mapping[str, int]) -> dict[str, int]:
    """Return calls per call of the model, which an export may call several times."""
    times = max(calls.get("", 1), 1)
    return {path: n // times for path, n in calls.items()}
