"""Reading a number that is collected: exactly, and without waiting for a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.reduce.arrays import local, readable

__all__ = ["read_number"]

INTEGERS = frozenset(
    getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)

PLAIN = (Tensor, torch.nn.Parameter)


def read_number(series: str, value: Any) -> float | Tensor:
    """Return the number as float64: a float, or a 0-d copy that stays on its device.

    Integers beyond 2**53 are rounded, as float64 does; everything else is exact.

    Raises
    ------
    ValueError
        For a tensor of no or of several elements, or an integer beyond all of float64.
    TypeError
        For what is no real number: bools, complex and quantized numbers, text, None.
    UnreadableError
        For a tensor that holds no values; a TypeError, too.

    Examples
    --------
    >>> read_number("loss", torch.tensor([0.1], dtype=torch.bfloat16))
    0.10009765625
    """
    if isinstance(value, Tensor):
        return _read_tensor(series, value)
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{_where(series)} the integer is too large for float64") from None
    raise TypeError(
        f"{_where(series)} {type(value).__name__} {value!r}"[:120]
        + "; a tensor of one element or a real number is expected"
    )


def _read_tensor(series: str, tensor: Tensor) -> float | Tensor:
    kind = tensor.dtype
    if not (kind.is_floating_point or kind in INTEGERS):
        raise TypeError(
            f"{_where(series)} a tensor of {kind}; allowed: real floating-point numbers and "
            f"integers"
        )
    tensor = local(tensor)
    if tensor.numel() != 1:
        raise ValueError(
            f"{_where(series)} a tensor of shape {tuple(tensor.shape)}; one element is expected"
        )
    if type(tensor) in PLAIN and tensor.is_cpu and tensor.layout is torch.strided:
        return float(tensor.item())
    number = readable(tensor).reshape(())
    if number.device.type == "mps":  # which has no float64
        number = number.cpu()
    # A copy, as the loop may change the tensor in place before it is read.
    return float(number) if number.is_cpu else number.to(torch.float64, copy=True)


def _where(series: str) -> str:
    return f"collect(..., {series!r}):"
