"""Sums of tensors in a graph, and the operator that hands them out.

The operator has an effect, so that no compiler removes it, and takes sums alone: a graph is fused
as without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch._dynamo.exc import RestartAnalysis

from notebook_probe.errors import UnreadableError
from notebook_probe.probes.inside.origins import SumsOrigin, origins, reductions_of
from notebook_probe.probes.step.phase import is_captured
from notebook_probe.quantities.reduce.measure import STAT

__all__ = [
    "GraphReader",
    "Summed",
    "SumsKeeper",
    "at_the_end",
    "define",
    "hand_out",
    "hand_out_in_backward",
    "keepers",
]


class SumsKeeper(Protocol):
    """Protocol of the receiver of a run's sums.

    `GraphReadings`, which imports this module, is one.
    """

    variant: str
    """Set of readings that graphs make, empty for none; Dynamo compiles a graph for each value."""
    compiles: bool
    """A graph that makes readings is being compiled."""
    training: Callable[[], nn.Module | None]
    """Reference to the model, whose mode says whether a call is of the training."""

    def keep(self, sums: Tensor, n: int, row: int, where: SumsOrigin) -> None:
        """Keep the sums of a tensor of ``n`` elements, at the module with the number ``row``."""

    def module_of(self, row: int) -> nn.Module | None:
        """Return the module with a number."""

    def reads_in(self, module: nn.Module) -> bool:
        """Return whether a graph of a module would read now."""

    def refuse(self, error: Exception) -> None:
        """Note that a backend could not compile a graph with readings."""


keepers: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Receivers by the number that graphs have of them."""


def hand_out(found: Sequence[Summed]) -> None:
    """Hand out sums, all of one device together."""
    for device in {one.sums.device: None for one in found}:
        here = [one for one in found if one.sums.device == device]
        sums = torch.cat([one.sums for one in here]) if len(here) > 1 else here[0].sums
        sizes, rows = [one.n for one in here], [one.row for one in here]
        torch.ops.notebook_probe.keep(sums, sizes, rows, "\n".join(one.where for one in here))


class Summed(NamedTuple):
    """Sums of a tensor of ``n`` elements, and what they are of, as a text."""

    sums: Tensor
    n: int
    row: Tensor
    where: str


class _AtEnd:
    """Sums to hand out when a backward ends, which keeps them."""

    def __init__(self) -> None:
        self.summed: list[Callable[[], list[Summed]]] = []

    def __call__(self) -> None:
        hand_out([one for summed in self.summed for one in summed()])


_waiting: WeakValueDictionary[int, _AtEnd] = WeakValueDictionary()
"""Sums of each backward that is being traced."""


def hand_out_in_backward(found: list[Summed]) -> None:
    """Hand out sums in a backward: if it is traced, all of it together when it ends."""
    if not at_the_end(lambda: found):
        hand_out(found)


def at_the_end(summed: Callable[[], list[Summed]]) -> bool:
    """Hand out what a function returns when the backward that is traced ends.

    Return False if none is traced.
    """
    if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is None:
        return False
    task = torch._C._current_graph_task_id()
    end = _waiting.get(task)
    if end is None:
        end = _waiting[task] = _AtEnd()
        torch.autograd.Variable._execution_engine.queue_callback(end)
    end.summed.append(summed)
    return True


class GraphReader(NamedTuple):
    """Sums to read of a tensor, or of a gradient."""

    row: Tensor
    where: str
    module: nn.Module | None
    """A module like the one that is read."""
    parts: str
    is_first: bool

    def __call__(self, gradient: Tensor) -> None:
        """Hand out the sums of a gradient, as a hook on the tensor."""
        hand_out_in_backward(self.summed(gradient))

    def summed(self, tensor: Tensor) -> list[Summed]:
        """Return the sums of a tensor; nothing if they cannot be traced."""
        try:
            return [self._summed(tensor)]
        except RestartAnalysis:  # by which Dynamo begins again
            raise
        except Exception:  # such as of a size that data decide: the model is compiled without
            return []

    def _summed(self, tensor: Tensor) -> Summed:
        n = tensor.numel()
        found = [*(self._sums(tensor) if n else self._nothing(tensor))]
        flat = [sums for _, sums in found] or [_empty(tensor)]
        sums = flat[0] if len(flat) == 1 else torch.cat(flat)
        read = [f"{len(own)}:{','.join(sorted(names))}" for names, own in found]
        return Summed(sums, n, self.row, " ".join([self.where, *read]))

    def _sums(self, tensor: Tensor) -> Iterator[tuple[frozenset[str], Tensor]]:
        for reduction, wanted in reductions_of(self.parts):
            if reduction.traced is not None and (self.is_first or not reduction.first_only):
                try:
                    sums = reduction.traced.sums(tensor, self.module, wanted)
                except UnreadableError:  # indices have no channels
                    continue
                yield wanted, sums.reshape(-1)

    def _nothing(self, tensor: Tensor) -> Iterator[tuple[frozenset[str], Tensor]]:
        """Yield the sums of a tensor without elements, of which a pooled `Stat` has to know."""
        return ((own, _empty(tensor)) for one, own in reductions_of(self.parts) if one is STAT)


def _empty(tensor: Tensor) -> Tensor:
    return torch.zeros(0, dtype=torch.float64, device=tensor.device)


def _keep(sums: Tensor, n: list[int], rows: list[Tensor], where: str) -> None:
    if not sums.is_cpu and is_captured():
        return  # a CUDA graph would write there again at each replay, and run no Python
    found = origins(where)
    pieces = sums.split([one.length for one in found])
    for piece, size, row, origin in zip(pieces, n, rows, found, strict=True):
        receiver: SumsKeeper | None = keepers.get(origin.keeper)
        if receiver is not None:
            receiver.keep(piece, size, int(row), origin)


def _keep_nothing(sums: Tensor, n: list[int], rows: list[Tensor], where: str) -> None:
    """Replace `_keep` where tensors have no values."""


def define() -> bool:
    """Define the operator; return whether this torch has what that needs."""
    try:
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

        _library.define("keep(Tensor sums, SymInt[] n, Tensor[] rows, str where) -> ()")
        _library.impl("keep", _keep, "CompositeExplicitAutograd")
        _library.impl("keep", _keep_nothing, "Meta")
        _register_effectful_op(torch.ops.notebook_probe.keep.default, _EffectType.ORDERED)
    except (ImportError, AttributeError, RuntimeError):
        return False
    return True


_library = torch.library.Library("notebook_probe", "DEF")
