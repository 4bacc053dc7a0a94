"""Log of one step: every operation that torch dispatches, its module, line and result."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from notebook_probe.examine.operations.hashes import TensorHash, hash_of, hashes_of
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.source_lines import origin_of, outward

__all__ = ["LoggedOperation", "OperationLog", "SourceLine"]

UNINITIALIZED = "empty"
"""Part of the names of operations whose results have no values yet."""
DEVICES = ("device", "pin_memory", "layout")
"""Arguments that say where a tensor is, and nothing about its values."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Line of a source file; file "" if it is unknown."""

    file: str = ""
    line: int = 0

    @property
    def code(self) -> str:
        """Source of the line, without indentation."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """An operation of one step.

    Attributes
    ----------
    name : str
        torch's name of the operation, such as ``aten.mul.Tensor``.
    module : str
        Path of the module in whose call it is; in the backward, of that of its forward operation.
    line : SourceLine
        The user's line; in the backward that of the forward operation.
    is_backward : bool
    arguments : str
        All arguments but tensors.
    inputs, outputs : tuple of TensorHash
    """

    name: str
    module: str
    line: SourceLine
    is_backward: bool
    arguments: str
    inputs: tuple[TensorHash, ...]
    outputs: tuple[TensorHash, ...]

    @property
    def token(self) -> tuple[bool, str, str]:
        """Key by which operations of two logs are aligned."""
        return self.is_backward, self.module, self.name


class OperationLog(TorchDispatchMode):
    """Mode that logs every operation while it is entered.

    Parameters
    ----------
    model : nn.Module
        A copy; its modules get hooks that say which is called.

    Attributes
    ----------
    operations : list of LoggedOperation
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.operations: list[LoggedOperation] = []
        self.is_backward = False
        """True from the call of `backward` on."""
        self._model = model
        self._buffers = {_address(one) for one in model.buffers()} - {0}
        self._called: list[str] = []
        self._origins: dict[int, tuple[str, SourceLine]] = {}
        """Module and line of a forward operation, by the number of its node of the graph."""

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Log what is computed inside."""
        handles = []
        for path, module in self._model.named_modules():

            def enter(module: nn.Module, args: Any, path: str = path) -> None:
                self._called.append(path)

            def leave(module: nn.Module, args: Any, output: Any) -> None:
                self._called.pop()

            handles.append(module.register_forward_pre_hook(enter, prepend=True))
            # Also after an error, or later operations would count for this module.
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.is_backward and self._called:  # a checkpointed module is called again
            self._origin(None)
            return func(*args, **kwargs)
        node = torch._C._current_autograd_node()
        module, line = self._origin(node)
        given = tensors_of([args, kwargs])
        inputs = [hash_of(one) for one in given]
        output = func(*args, **kwargs)
        # Kernels of batch norm write into buffers, which they do not return.
        written = [one for one in given if _address(one) in self._buffers]
        self.operations.append(
            LoggedOperation(
                name=str(func),
                module=module,
                line=line,
                is_backward=self.is_backward,
                arguments=_text_of(args, kwargs),
                inputs=tuple(one for one in inputs if one is not None),
                outputs=() if UNINITIALIZED in str(func) else hashes_of([output, written]),
            )
        )
        return output

    def _origin(self, node: Any) -> tuple[str, SourceLine]:
        """Return module and line of the present operation, and note them for its backward."""
        line = _users_line(sys._getframe(2))
        called = self._called[-1] if self._called else ""
        if node is not None:
            module, forward_line = self._origins.get(node._sequence_nr(), (called, SourceLine()))
            return module, line or forward_line
        origin = called, line or SourceLine()
        # A node is made, and counted, before its operation is dispatched.
        self._origins.setdefault(torch._C._autograd._get_sequence_nr() - 1, origin)
        return origin


def _address(tensor: Tensor) -> int:
    """Return where the values of a tensor begin; 0 for one without, as a sparse one."""
    return tensor.data_ptr() if tensor.layout == torch.strided else 0


def _text_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the arguments as text, ``~`` for each tensor."""
    known = {name: one for name, one in kwargs.items() if name not in DEVICES and one is not None}
    shown = tree_map_only(Tensor, lambda _: "~", (list(args), known))
    values = [str(one) for one in shown[0]] + [f"{name}={one}" for name, one in shown[1].items()]
    return ", ".join(values)


def _users_line(frame: FrameType | None) -> SourceLine | None:
    """Return the innermost line of the user's code; else of a library; None if torch called it.

    Frames above the call of this package are where the comparison was asked for.
    """
    of_library = None
    for caller in outward(frame):
        file = caller.f_code.co_filename
        origin = origin_of(file)
        # What torch calls inside of a step, as a hook of this package, is no end of the step.
        if origin == "ours" and file.endswith("stepping.py"):
            break
        if origin == "user":
            return SourceLine(file, caller.f_lineno)
        if origin == "library" and of_library is None:
            of_library = SourceLine(file, caller.f_lineno)
    return of_library
