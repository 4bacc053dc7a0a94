"""Copies of a state that hold nothing but what `weights_only=True` reads back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from notebook_probe.errors import CheckpointError
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.sharded import whole

__all__ = ["copied"]

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


class _Copies:
    """Copies of tensors; a shared tensor is copied once."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}

    def of(self, value: Tensor) -> Tensor:
        value = value.detach()
        # Tied weights stay tied in the copy; views of one address may differ in the rest.
        key = (value.device, _address(value), value.shape, value.stride(), value.dtype)
        if key not in self._known:
            # Kept with its copy: a tensor that is freed leaves its address to the next one.
            self._known[key] = value, self._memory.copy(whole(value))
        return self._known[key][1]


def copied(state: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """Copy all tensors to host memory; a shared tensor is copied once.

    Raises
    ------
    CheckpointError
        For an object of any other class: a checkpoint holds no code.
    """
    copies = _Copies(memory)
    return {name: _copied(value, name, copies) for name, value in state.items()}


def _copied(value: Any, where: str, copies: _Copies) -> Any:
    """Return a copy of plain values, with tensors that are copied together."""
    if isinstance(value, Tensor):
        return copies.of(value)
    if type(value) in PLAIN:
        return value
    if isinstance(value, Mapping):
        return _mapping(value, where, copies)
    if type(value) is set:
        return {_copied(inner, where, copies) for inner in value}
    if type(value) in (list, tuple):
        return type(value)(
            _copied(inner, f"{where}[{place}]", copies) for place, inner in enumerate(value)
        )
    number = getattr(value, "item", None)
    if callable(number) and getattr(value, "ndim", None) == 0:  # numpy's
        return _copied(number(), where, copies)
    raise CheckpointError(
        f"{where} is {type(value).__qualname__} {value!r}"[:200] + "; a checkpoint holds tensors, "
        "numbers, text, and lists and dicts of these, so that reading it runs no code"
    )


def _mapping(value: Mapping[Any, Any], where: str, copies: _Copies) -> dict[Any, Any]:
    # An OrderedDict stays one, as a plain dict cannot take the attribute below.
    found = OrderedDict() if isinstance(value, OrderedDict) else {}
    for key, inner in value.items():
        found[_copied(key, where, copies)] = _copied(inner, f"{where}.{key}", copies)
    # Without its version a module such as BatchNorm converts its state as one of an old torch.
    versions = getattr(value, "_metadata", None)
    if versions is not None:  # of a module's state_dict
        found._metadata = _copied(versions, f"{where}._metadata", copies)  # type: ignore[attr-defined]
    return found


def _address(value: Tensor) -> int:
    """Return the address of the first element; for other or empty tensors, the object's id."""
    known = value.layout == torch.strided and value.numel() and type(value) is Tensor
    return value.data_ptr() if known else id(value)
