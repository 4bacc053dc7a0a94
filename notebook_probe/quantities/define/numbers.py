"""Real numbers: reading what is logged, collected or returned, and making one of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.axis import Axis, Image, PerChannel
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["COMBINE", "read_array", "read_image", "read_scalar", "read_scalars", "read_vector"]

MOST_NUMBERS = 2**18
"""Maximum length of a vector: each number is recorded separately."""
MOST_ELEMENTS = 2**20
"""Maximum size of an array: several must fit into the memory of the writer's queue."""


def read_scalar(where: str, value: Any) -> Number:
    """Return a float, or a detached 0-d tensor that stays on its device.

    Raises
    ------
    QuantityError
        For several elements, complex numbers, text: what was given and what is allowed.

    Examples
    --------
    >>> import torch
    >>> read_scalar("loss", torch.tensor([0.5], requires_grad=True))
    0.5
    """
    if isinstance(value, Tensor):
        is_usual = type(value) is Tensor and value.is_cpu and value.dtype is torch.float32
        if is_usual and value.numel() == 1:  # to detach it first would take three times as long
            return value.item()
        if value.numel() != 1 or value.is_complex():
            raise _refused(where, f"a tensor of shape {tuple(value.shape)} and {value.dtype}")
        value = value.detach().reshape(())
        # A CPU tensor becomes a float at once; on a device it is cloned, as the loop may write over
        # it, and is copied to the host later together with others.
        return float(value) if value.is_cpu else value.clone()
    if isinstance(value, Real | np.generic):
        return float(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return float(value.reshape(())[()])
    raise _refused(where, f"{type(value).__name__} {value!r}"[:80])


def read_scalars(where: str, values: dict[str, Any]) -> tuple[dict[str, Number], bool]:
    """Numbers by name, each as `read_scalar` reads it, and whether any stays on a device.

    Those that are floats all are returned as they are.
    """
    if set(map(type, values.values())) <= {float}:  # thousands of them cost nothing
        return values, False
    read = {name: read_scalar(f"{where}({name}=...):", value) for name, value in values.items()}
    return read, any(isinstance(value, Tensor) for value in read.values())


def read_vector(where: str, value: Any, axis: Axis | PerChannel) -> Any:
    """Return an array, or a detached tensor that stays on its device, as long as the axis has it.

    Raises
    ------
    QuantityError
        For another shape, complex numbers, text: what was given and what is allowed.
    """
    vector = value.detach() if isinstance(value, Tensor) else np.asarray(value)
    numeric = not vector.is_complex() if isinstance(vector, Tensor) else vector.dtype.kind in "biuf"
    if not axis.fits(tuple(vector.shape)) or not numeric:
        raise QuantityError(
            f"{where} {type(value).__name__} of shape {tuple(vector.shape)} and {vector.dtype}; "
            f"{axis.expected} are expected"
        )
    if vector.shape[0] > MOST_NUMBERS:
        raise QuantityError(
            f"{where} {vector.shape[0]} numbers; at most {MOST_NUMBERS} are recorded of a module, "
            f"such as a histogram or quantiles of them"
        )
    if isinstance(vector, Tensor):
        # A copy in either case, as the memory belongs to the training.
        return vector.double().numpy().copy() if vector.is_cpu else vector.clone()
    return np.array(vector, np.float64)


def read_array(where: str, value: Any) -> Any:
    """Return a copy of an array as float32, or a detached one of a tensor that stays on its device.

    Raises
    ------
    QuantityError
        For text, complex numbers, a tensor that holds no values, and what is too small or large.

    Examples
    --------
    >>> read_array("seen", [[True, False]])
    array([[1., 0.]], dtype=float32)
    """
    array = value.detach() if isinstance(value, Tensor) else _as_array(where, value)
    shape = tuple(array.shape)
    if not _is_real(array):
        raise QuantityError(
            f"{where} {type(value).__name__} of shape {shape} and {array.dtype}; an array of real "
            f"numbers is expected"
        )
    size = math.prod(shape)
    if not shape or not 1 <= size <= MOST_ELEMENTS:
        raise QuantityError(
            f"{where} an array of shape {shape}, {size} elements; 1 to {MOST_ELEMENTS} of them are "
            f"kept along one or more dimensions, {4 * MOST_ELEMENTS // 2**20} MB"
        )
    if isinstance(array, Tensor) and not array.is_cpu:
        return array.clone()
    # Infinite in the record, which is the truth about a number that float32 cannot hold.
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        return np.array(array.float().numpy() if isinstance(array, Tensor) else array, np.float32)


def read_image(where: str, value: Any, axis: Image) -> Any:
    """Read an image, like `read_array`."""
    image = read_array(where, value)
    if not axis.fits(tuple(image.shape)):
        raise QuantityError(
            f"{where} an array of shape {tuple(image.shape)}; {axis.expected} is expected"
        )
    return image


def _as_array(where: str, value: Any) -> Any:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise QuantityError(f"{where} {type(value).__name__}; {error}") from None


def _is_real(array: Any) -> bool:
    if isinstance(array, Tensor):
        # Meta tensors have no values, quantized and sparse ones no plain memory to copy.
        has_values = not array.is_meta and array.layout is torch.strided and not array.is_quantized
        return has_values and not array.is_complex()
    return array.dtype.kind in "biuf"


def _refused(where: str, given: str) -> QuantityError:
    return QuantityError(f"{where} {given}; one real number is expected")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _largest(values: Sequence[float]) -> float:
    # max() of a list with NaN depends on the order.
    return max(values) if all(v == v for v in values) else math.nan  # NaN != NaN


def _smallest(values: Sequence[float]) -> float:
    return min(values) if all(v == v for v in values) else math.nan


COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": _mean,
    "sum": sum,
    "max": _largest,
    "min": _smallest,
    "last": lambda values: values[-1],
    # hypot of many: squares of float64 overflow only beyond 1e154.
    "rss": lambda values: math.sqrt(sum(value * value for value in values)),
}
"""Mean, sum, extrema (NaN if one is), the last, and the root of summed squares for norms."""
