"""A made-up accelerator: tensors that a program may compute with, and not look into for nothing.

Whoever asks such a tensor for its value would have to wait for a real device; here it is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

__all__ = ["Remote", "moved", "waiting_is_forbidden"]

aten = torch.ops.aten
META = torch.device("meta")
LOOKS = (aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default)


class Remote(Tensor):
    """A tensor on a device of the name ``hpu``, which is the CPU in truth.

    Attributes
    ----------
    inner : Tensor
        Its values.
    """

    inner: Tensor  # type: ignore[assignment]
    n_copies: ClassVar[int] = 0
    """Copies to the host."""
    may_wait: ClassVar[bool] = True

    @staticmethod
    def __new__(cls, inner: Tensor) -> Remote:
        made: Remote = Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=META
        )
        return made

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner.detach()

    is_meta = False
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("hpu", 0)

    def cpu(self, *args: Any, **kwargs: Any) -> Tensor:
        Remote.n_copies += 1
        if not Remote.may_wait:
            raise AssertionError("a step waited for the device")
        return self.inner.clone()

    def __repr__(self, **kwargs: Any) -> str:  # type: ignore[override]
        return f"Remote({tuple(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in LOOKS:
            raise AssertionError(f"{func} looks into a tensor that is on a device")
        given = tree_map_only(Remote, lambda tensor: tensor.inner, args)
        named = tree_map_only(Remote, lambda tensor: tensor.inner, kwargs or {})
        named.pop("device", None)
        result = func(*given, **named)
        if func._schema.is_mutable:
            return args[0]
        return tree_map_only(Tensor, Remote, result)


def moved(model: nn.Module) -> nn.Module:
    """The model with its parameters and buffers on the made-up device."""
    for module in model.modules():
        for name, value in [*module.named_parameters(recurse=False)]:
            setattr(module, name, nn.Parameter(Remote(value.detach().clone())))
        for name, buffer in [*module.named_buffers(recurse=False)]:
            module._buffers[name] = Remote(buffer.clone())
    return model


class _Factories(TorchFunctionMode):
    """``torch.ones(..., device=hpu)`` and ``tensor.to(hpu)`` make a tensor there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named, places = dict(kwargs or {}), (*args[1:2], (kwargs or {}).get("device"))
        if not any(getattr(place, "type", "") == "hpu" for place in places):
            return func(*args, **named)
        if func is Tensor.to:
            return Remote(args[0])
        del named["device"]
        return Remote(func(*args, **named))


@contextmanager
def waiting_is_forbidden() -> Iterator[None]:
    """Whoever copies something to the host in here is told off."""
    Remote.may_wait = False
    try:
        with _Factories():
            yield
    finally:
        Remote.may_wait = True
