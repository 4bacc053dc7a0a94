"""A pretended accelerator: tensors on another device, computed on the CPU, that count who waits.

On a real one every number that Python asks for, and every copy to the host, waits until all that
was queued before has been computed. Here each of these is counted. torch allows one such device in
a process, so that it is set up in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from tests.forks import process_context

__all__ = [
    "NAME",
    "Accelerator",
    "OnDevice",
    "copies",
    "host",
    "kernels",
    "moved",
    "on_device",
    "waits",
]

NAME = "pretended"
PATIENCE_S = 120.0

waits: list[str] = []
"""Every time Python asked the device for a number or for a shape that depends on one."""

copies: list[int] = []
"""Every copy to the host, in elements."""

kernels: list[str] = []
"""Every operation that would launch a kernel: all but views, and memory that is only given out."""

WITHOUT_KERNEL = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty",
                  "aten::detach", "aten::_unsafe_view"}  # fmt: skip

WAITING = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal",
           "aten::is_nonzero", "aten::unique_consecutive", "aten::_unique2", "aten::bincount",
           "aten::repeat_interleave", "aten::_linalg_check_errors"}  # fmt: skip


class OnDevice(Tensor):
    """A tensor whose elements lie on the host, and that says it is on the device."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> OnDevice:
        made: OnDevice = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=torch.device(NAME, 0),
            requires_grad=False,
        )
        return made

    def __init__(self, inner: Tensor) -> None:
        self.on_host = inner.detach()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"OnDevice({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = function.overloadpacket._qualified_op_name
        kwargs = {**(kwargs or {})}
        if name in ("aten::index", "aten::index_put_") and _has_mask(args[1]):
            waits.append(f"{name} by a mask")  # whose size only the device knows
        if _comes_from_host(name, args, kwargs):
            waits.append(f"{name} from the host")  # memory that is not pinned is waited for
        if name in WAITING:
            waits.append(name)
            return function(*tree_map(_inner, args), **tree_map(_inner, kwargs))
        if name not in WITHOUT_KERNEL and not _is_view(function):
            kernels.append(name)
        to_host = name == "aten::_to_copy" and str(kwargs.get("device")) == "cpu"
        if name == "aten::copy_" and not isinstance(args[0], OnDevice):
            to_host = True
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        found = function(*tree_map(_inner, args), **tree_map(_inner, kwargs))
        if to_host:
            copies.append(found.numel())
            return args[0] if name == "aten::copy_" else found
        is_in_place = name.endswith("_") and not name.endswith("__")  # as __rshift__ does
        if is_in_place and isinstance(args[0], OnDevice):
            return args[0]
        if "out" in kwargs and kwargs["out"] is not None:
            return kwargs["out"]
        return tree_map(lambda one: OnDevice(one) if isinstance(one, Tensor) else one, found)


def _has_mask(indices: Any) -> bool:
    return any(isinstance(one, Tensor) and one.dtype is torch.bool for one in indices)


def _comes_from_host(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """Tell whether elements are copied from the host; a single number goes along with a kernel."""
    if kwargs.get("non_blocking") or (name == "aten::copy_" and len(args) > 2 and args[2]):
        return False
    if name in ("aten::index", "aten::index_put_"):
        indices = (one for one in args[1] if isinstance(one, Tensor))
        return any(not isinstance(one, OnDevice) for one in indices)
    if name == "aten::copy_":
        source = args[1]
        return isinstance(args[0], OnDevice) and not isinstance(source, OnDevice)
    is_moved = name == "aten::_to_copy" and getattr(kwargs.get("device"), "type", "cpu") == NAME
    return is_moved and not isinstance(args[0], OnDevice)


@cache
def _is_view(function: Any) -> bool:
    """Tell whether what an operation returns is what it was given, seen otherwise."""
    aliases = [one.alias_info for one in function._schema.returns]
    return any(one is not None and not one.is_write for one in aliases)


def _inner(value: Any) -> Any:
    return value.on_host if isinstance(value, OnDevice) else value


def on_device(tensor: Tensor) -> Tensor:
    """A copy of a host tensor on the device."""
    return OnDevice(tensor.detach().clone())


def host(tensor: Tensor) -> Tensor:
    """The elements, past the device: not counted as a copy."""
    inner: Tensor = _inner(tensor.detach())
    return inner


def moved(model: nn.Module) -> nn.Module:
    """Put every parameter and buffer of a model on the device."""
    for module in model.modules():
        for name, value in [*module._parameters.items()]:
            if value is not None:
                module._parameters[name] = nn.Parameter(on_device(value))
        for name, buffer in [*module._buffers.items()]:
            if buffer is not None:
                module._buffers[name] = on_device(buffer)
    return model


class Accelerator:
    """A process with the device in it; ``run(function, *arguments)`` calls a function there."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, process_context(), initializer=_set_up)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.submit(_forgetful, function, arguments).result(PATIENCE_S)

    def end(self) -> None:
        self._pool.shutdown()


_library = torch.library.Library("aten", "IMPL")


def _set_up() -> None:
    torch.set_num_threads(1)
    _setup_privateuseone_for_python_backend(NAME)
    # What makes new tensors is dispatched by device; all else by the class above.
    _library.impl("empty.memory_format", _empty, "PrivateUse1")
    _library.impl("empty_strided", _empty_strided, "PrivateUse1")


def _empty(size: Any, *, dtype: Any = None, memory_format: Any = None, **_: Any) -> Tensor:
    memory_format = memory_format or torch.contiguous_format
    return OnDevice(torch.empty(size, dtype=dtype, memory_format=memory_format))


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return OnDevice(torch.empty_strided(size, stride, dtype=dtype))


def _forgetful(function: Callable[..., Any], arguments: Any) -> Any:
    waits.clear()
    copies.clear()
    kernels.clear()
    return function(*arguments)
