"""Readings that Dynamo traces into a graph: the sums of a tensor, and an operator that keeps them.

The operator has an effect, so that no compiler removes it, and takes sums alone: a graph is fused
as without it. A gradient is read by a hook on the tensor, which autograd runs while AOTAutograd
traces the backward; so the model's own graph of gradients has no node more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import FrameType
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch._C._dynamo import eval_frame
from torch._dynamo import config, convert_frame
from torch._dynamo.exc import RestartAnalysis

from notebook_probe.errors import UnreadableError
from notebook_probe.probes.inside.refused import drop_if_refused
from notebook_probe.probes.step.containers import activations
from notebook_probe.probes.step.phase import is_captured
from notebook_probe.quantities.reduce.measure import STAT
from notebook_probe.quantities.reduce.reductions import Reduction, measuring

__all__ = [
    "COUNTED",
    "NOTHING_READ",
    "SINCE",
    "TRACED",
    "GraphTap",
    "Sums",
    "SumsKeeper",
    "SumsOrigin",
    "can_trace",
    "keepers",
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

NOTHING_READ = "-"
"""Mark in a reading that nothing of a tensor is read."""

COUNTED = "count"
"""Mark in a reading that a gradient is only counted, to tell whether a call had one."""

_WITHOUT_SUMS = (NOTHING_READ, COUNTED)


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


class Sums(NamedTuple):
    """Sums of one reduction among those of a tensor."""

    reduction: Reduction
    parts: frozenset[str]
    length: int


class SumsOrigin(NamedTuple):
    """Origin of sums that a graph hands out.

    Attributes
    ----------
    what : str
        Either ``input``, ``output``, ``awaited`` (an output whose gradient will be read) or
        ``gradient``.
    nth : int
        Number of the tensor among those of the call.
    sums : tuple of Sums
        What the sums are, one after the other.
    """

    keeper: str
    what: str
    nth: int
    sums: tuple[Sums, ...]


@cache
def _where(text: str) -> SumsOrigin:
    keeper, what, nth, *sums = text.split(" ")
    return SumsOrigin(keeper, what, int(nth), tuple(map(_sums_of, sums)))


def _sums_of(text: str) -> Sums:
    length, parts = text.split(":")
    names = parts.split(",")
    return Sums(measuring(names[0]), frozenset(names), int(length))


@cache
def _reductions(parts: str) -> tuple[tuple[Reduction, frozenset[str]], ...]:
    """Return the reductions that measure some parts, each with the parts that it measures."""
    if parts in _WITHOUT_SUMS:
        return ()
    found: dict[Reduction, set[str]] = {}
    for part in parts.split(","):
        found.setdefault(measuring(part), set()).add(part)
    return tuple((one, frozenset(own)) for one, own in found.items())


keepers: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Receivers by the number that graphs have of them."""


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
        Its number. A graph has it as a tensor, its argument, as modules that are alike share one:
        it would be compiled again for another number.
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
        """Read what a call is given, in a graph that is being traced."""
        if self._is_read(module) and self.input:
            _read_traced(_tensors([args, kwargs]), self.row, self.input)

    def after(self, module: nn.Module, output: Any) -> None:
        """Read what a call returns, in a graph that is being traced."""
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
    keeper, like, name, parts, of_gradient = reading.split(" ")
    receiver: SumsKeeper | None = keepers.get(keeper)
    if receiver is None:
        return
    receiver.compiles |= drop_if_refused(_read, _refuse)
    if _functorch.maybe_current_level() is not None or _is_in_branch():
        return
    module = receiver.module_of(int(like))
    distinct = [*{id(one): one for one in tensors if one.layout is torch.strided}.values()]
    for nth, tensor in enumerate(activations(distinct)):
        reads_gradient = of_gradient != NOTHING_READ and tensor.requires_grad and _is_awaited()
        what = "awaited" if reads_gradient else name
        _Handing(row, f"{keeper} {what} {nth}", module, parts, nth == 0)(tensor)
        if reads_gradient:
            where = f"{keeper} gradient {nth}"
            tensor.register_hook(_Handing(row, where, module, of_gradient, nth == 0))


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


class _Handing(NamedTuple):
    """Operations that hand out the sums of a tensor, or of its gradient."""

    row: Tensor
    where: str
    module: nn.Module | None
    """A module like the one that is read."""
    parts: str
    is_first: bool

    def __call__(self, tensor: Tensor) -> None:
        try:
            self._hand_out(tensor)
        except RestartAnalysis:  # by which Dynamo begins again
            raise
        except Exception:  # such as of a size that data decide: the model is compiled without
            return

    def _hand_out(self, tensor: Tensor) -> None:
        n = tensor.numel()
        found = [*(self._sums(tensor) if n else self._nothing(tensor))]
        flat = [sums for _, sums in found] or [_empty(tensor)]
        sums = flat[0] if len(flat) == 1 else torch.cat(flat)
        read = [f"{len(own)}:{','.join(sorted(names))}" for names, own in found]
        torch.ops.notebook_probe.keep(sums, n, self.row, " ".join([self.where, *read]))

    def _sums(self, tensor: Tensor) -> Iterator[tuple[frozenset[str], Tensor]]:
        for reduction, wanted in _reductions(self.parts):
            if reduction.traced is not None and (self.is_first or not reduction.first_only):
                try:
                    sums = reduction.traced.sums(tensor, self.module, wanted)
                except UnreadableError:  # indices have no channels
                    continue
                yield wanted, sums.reshape(-1)

    def _nothing(self, tensor: Tensor) -> Iterator[tuple[frozenset[str], Tensor]]:
        """Yield the sums of a tensor without elements, of which a pooled `Stat` has to know."""
        return ((own, _empty(tensor)) for one, own in _reductions(self.parts) if one is STAT)


def _empty(tensor: Tensor) -> Tensor:
    return torch.zeros(0, dtype=torch.float64, device=tensor.device)


def _keep(sums: Tensor, n: int, row: Tensor, where: str) -> None:
    if not sums.is_cpu and is_captured():
        return  # a CUDA graph would write there again at each replay, and run no Python
    found = _where(where)
    receiver: SumsKeeper | None = keepers.get(found.keeper)
    if receiver is not None:
        receiver.keep(sums, n, int(row), found)


def _keep_nothing(sums: Tensor, n: int, row: Tensor, where: str) -> None:
    """Replace `_keep` where tensors have no values."""


def _has_all_needed() -> bool:
    if not all(hasattr(eval_frame, name) for name in NEEDED):
        return False
    manager = getattr(torch._C._dynamo.guards, "GuardManager", None)
    return hasattr(convert_frame, "input_codes") and all(hasattr(manager, n) for n in OF_GUARDS)


def _define() -> bool:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < tuple(map(int, SINCE.split("."))) or not _has_all_needed():
        return False
    try:
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

        _library.define("keep(Tensor sums, SymInt n, Tensor row, str where) -> ()")
        _library.impl("keep", _keep, "CompositeExplicitAutograd")
        _library.impl("keep", _keep_nothing, "Meta")
        _register_effectful_op(torch.ops.notebook_probe.keep.default, _EffectType.ORDERED)
    except (ImportError, AttributeError, RuntimeError):
        return False
    return True


_library = torch.library.Library("notebook_probe", "DEF")
_is_defined = _define()
_read_traced: Callable[[list[Tensor], Tensor, str], None] = torch._dynamo.allow_in_graph(_read)
