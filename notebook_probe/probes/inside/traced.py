"""Readings that Dynamo traces into a graph.

A gradient is read by a hook on the tensor, which autograd runs while AOTAutograd traces the
backward; so the model's own graph of gradients has no node more.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch._C._dynamo import eval_frame
from torch._dynamo import config, convert_frame

from notebook_probe.probes.inside.changed_graphs import ReadingNodes, change_graph
from notebook_probe.probes.inside.handing import (
    GraphReader,
    Summed,
    SumsKeeper,
    define,
    hand_out,
    keepers,
)
from notebook_probe.probes.inside.origins import NOTHING_READ
from notebook_probe.probes.inside.shares import Begun
from notebook_probe.probes.step.containers import activations

__all__ = [
    "SINCE",
    "TRACED",
    "GraphTap",
    "can_trace",
    "reading_text",
]

SINCE = "2.13"
"""First version of torch in which this is known to work."""

NEEDED = (
    "_FrameAction",
    "_FrameExecStrategy",
    "_debug_get_cache_entry_list",
    "reset_code",
    "set_code_exec_strategy",
)
"""Functions of Dynamo that are not public, so that a later version may have others."""

OF_GUARDS = ("add_lambda_guard", "get_child_managers", "get_type_of_guarded_value")
"""Methods of its guards."""


def can_trace() -> bool:
    """Return whether this torch has what tracing needs."""
    return _is_defined


def reading_text(
    keeper: str, like: int, name: str, parts: frozenset[str], of_gradient: frozenset[str]
) -> str:
    """Return what to read of a module's tensors, as the text that a graph has of it.

    Parameters
    ----------
    keeper : str
    like : int
        Number of a module of the same kind and sizes: those that are alike share a graph.
    name : str
        Either ``input`` or ``output``.
    parts, of_gradient : frozenset of str

    Examples
    --------
    >>> reading_text("0", 3, "output", frozenset({"zeros", "moments"}), frozenset())
    '0 3 output moments,zeros -'
    """
    return f"{keeper} {like} {name} {_joined(parts)} {_joined(of_gradient)}"


def _joined(parts: frozenset[str]) -> str:
    return ",".join(sorted(parts)) or NOTHING_READ


class GraphTap:
    """Readings of one module's calls in a graph; Dynamo guards on every attribute that is used.

    Parameters
    ----------
    keeper : SumsKeeper
    module : reference to nn.Module
        A shallow copy of it has the same hooks, and is not read.
    row : int
        Number of the row. A graph has it as a tensor, its argument, because similar modules share
        one graph: with another number it would be compiled again.
    """

    __slots__ = ("input", "keeper", "module", "output", "row")

    def __init__(
        self, keeper: SumsKeeper, module: Callable[[], nn.Module | None], row: int
    ) -> None:
        self.keeper, self.module = keeper, module
        # On the host, which reads it, and no inference tensor: a backward may have to keep it.
        with torch.inference_mode(False):
            self.row = torch.tensor(row, device="cpu")
        self.input = self.output = ""

    def before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Read the arguments of a call, in a graph that is being traced."""
        if self._is_read(module) and self.input:
            _read_traced(_tensors([args, kwargs]), self.row, self.input)

    def after(self, module: nn.Module, output: Any) -> None:
        """Read the output of a call, in a graph that is being traced."""
        if self._is_read(module) and self.output:
            _read_traced(_tensors(output), self.row, self.output)

    def _is_read(self, module: nn.Module) -> bool:
        # In this order: a graph without gradients or of an evaluation has one variant only, and
        # one that reads nothing does not depend on what there is to read.
        # Earlier torch cannot say whether it exports.
        if not (_is_defined and torch.is_grad_enabled()) or torch.compiler.is_exporting():
            return False
        root = self.keeper.training()
        if root is None or not root.training or self.keeper.variant == "":
            return False
        return self.module() is module


TRACED = (GraphTap,)
"""Classes of ours in the guards of a graph in which hooks were traced."""


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in tuples, lists and dicts, in code that Dynamo can trace."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = [*value.values()]
    found: list[Tensor] = []
    if isinstance(value, tuple | list):
        for one in value:
            found += _tensors(one)
    return found


def _read(tensors: list[Tensor], row: Tensor, reading: str) -> None:
    """Read tensors, with the operations that a compiler records."""
    _read_at_once(tensors, row, reading)


class _Found(NamedTuple):
    """Sums of the tensors of a reading, and the call that it begins."""

    summed: list[Summed]
    begun: Begun | None


def _read_at_once(
    tensors: list[Tensor], row: Tensor, reading: str, begun: _Found | None = None
) -> _Found:
    found = _summed(tensors, row, reading, begun)
    hand_out(found.summed)
    return found


def _summed(
    tensors: list[Tensor], row: Tensor, reading: str, begun: _Found | None = None
) -> _Found:
    """Return the sums of tensors, and have those of their gradients handed out.

    ``begun`` is what the reading of the same call's inputs has returned.
    """
    keeper, like, name, parts, of_gradient = reading.split(" ")
    receiver: SumsKeeper | None = keepers.get(keeper)
    if receiver is None:
        return _Found([], None)
    receiver.compiles |= change_graph(_NODES, _refuse)
    if _functorch.maybe_current_level() is not None or _is_in_branch():
        return _Found([], None)
    module = receiver.module_of(int(like))
    distinct = [*{id(one): one for one in tensors if one.layout is torch.strided}.values()]
    read = activations(distinct)
    is_awaited = of_gradient != NOTHING_READ and _is_awaited()
    is_called = name == "output"  # which is counted, if nothing else is read
    found: list[Summed] = []
    for nth, tensor in enumerate(read):
        awaits = is_awaited and is_called and tensor.requires_grad
        what = "awaited" if awaits else name
        reader = GraphReader(row, f"{keeper} {what} {nth}", module, parts, nth == 0)
        found += reader.summed(tensor) if is_called or parts != NOTHING_READ else []
        if awaits:
            where = f"{keeper} gradient {nth}"
            tensor.register_hook(GraphReader(row, where, module, of_gradient, nth == 0))
    if begun is not None and begun.begun is not None:
        begun.begun.hook(read)
    if is_called or not is_awaited:
        return _Found(found, None)
    reader = GraphReader(row, f"{keeper} entry", module, of_gradient, True)
    return _Found(found, Begun.of(read, reader))


def _hand_out_all(found: list[_Found]) -> None:
    hand_out([*itertools.chain(*(one.summed for one in found))])


def _begins(reading: str) -> bool:
    """Return whether a reading is of inputs whose gradients are read, too."""
    _, _, name, _, of_gradient = reading.split(" ")
    return name == "input" and of_gradient != NOTHING_READ


_NODES = ReadingNodes(_read, _read_at_once, _summed, _hand_out_all, _begins)


def _refuse(reading: str, error: Exception) -> None:
    receiver: SumsKeeper | None = keepers.get(reading.split(" ")[0])
    if receiver is not None:
        receiver.refuse(error)


def _is_in_branch() -> bool:
    """Return whether torch traces a branch or the body of a loop, which can have no effect.

    A checkpoint's body can, and is run by the modules named here.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        folder, _, name = frame.f_code.co_filename.replace("\\", "/").rpartition("/")
        if folder.endswith("torch/_higher_order_ops") and name not in ("wrap.py", "effects.py"):
            return True
        frame = frame.f_back
    return False


def _is_awaited() -> bool:
    """Return whether gradients are read; compiled autograd would trace the operator once more."""
    return not config.compiled_autograd


def _has_all_needed() -> bool:
    if not all(hasattr(eval_frame, name) for name in NEEDED):
        return False
    manager = getattr(torch._C._dynamo.guards, "GuardManager", None)
    return hasattr(convert_frame, "input_codes") and all(hasattr(manager, n) for n in OF_GUARDS)


def _define() -> bool:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < tuple(map(int, SINCE.split("."))) or not _has_all_needed():
        return False
    return define()


_is_defined = _define()
_read_traced: Callable[[list[Tensor], Tensor, str], object] = torch._dynamo.allow_in_graph(_read)
