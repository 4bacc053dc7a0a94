"""Zero-copy numpy views of tensors, and what to read of the tensors that have none."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError

__all__ = ["Floats", "components", "dense", "local", "readable", "sent", "tallied", "wide"]

Floats: TypeAlias = npt.NDArray[np.float32]

# Exact types: subclasses may change what their operations do, or hold no memory (DTensor).
_PLAIN = (Tensor, torch.nn.Parameter)
_FLOAT32 = np.dtype(np.float32)


def dense(tensor: Tensor) -> Floats | None:
    """All elements as one flat float32 view, in memory order; None where no such view exists.

    Permuted and channels-last tensors have one too: sums do not care for the order.
    """
    if type(tensor) not in _PLAIN:
        return None
    try:
        array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
    except (RuntimeError, TypeError):  # on an accelerator, sparse, half, without values, ...
        return None
    # By identity: numpy has one float32 dtype of the native byte order, and comparing takes longer.
    if array.dtype is not _FLOAT32:
        return None
    if not array.flags.c_contiguous:
        # Sorted by stride, axes are in memory order: channels-last tensors become contiguous views.
        order = sorted(range(array.ndim), key=array.strides.__getitem__, reverse=True)
        array = array.transpose(order)
        if not array.flags.c_contiguous:
            return None
    view: Floats = array.reshape(-1)
    return view


def readable(tensor: Tensor) -> Tensor:
    """Return a plain, strided, real, floating tensor with the same elements, at least float32.

    Integers and bools are cast, complex numbers become their moduli, sparse tensors dense, of a
    sharded tensor this process's shard is taken.

    Raises
    ------
    UnreadableError
        A tensor that holds no values, or of a kind that torch cannot convert.
    """
    kind = type(tensor)
    is_plain = kind in _PLAIN and tensor.layout is torch.strided
    if is_plain and tensor.dtype is torch.float32 and not (tensor.is_nested or tensor.is_meta):
        return tensor.detach()  # mostly
    # FakeTensor is in torch._subclasses: tracing compilers and exporters call hooks with it.
    if tensor.is_meta or kind.__module__.startswith("torch._subclasses"):
        raise UnreadableError(f"{_described(tensor)} holds no values")
    try:
        return _real(_strided(tensor.detach()))
    except (NotImplementedError, RuntimeError, TypeError) as error:
        raise UnreadableError(f"{_described(tensor)} cannot be read: {error}") from error


def local(tensor: Tensor) -> Tensor:
    """Return this process's shard of a sharded tensor: sums over a DTensor wait for the others."""
    if type(tensor) in _PLAIN or not hasattr(tensor, "to_local"):
        return tensor
    shard: Tensor = tensor.to_local()
    return shard


def wide(tensor: Tensor) -> Tensor:
    """Return a plain tensor of the same elements, in a type in which no difference is rounded away.

    Raises
    ------
    UnreadableError
        Same as in `readable`; complex numbers stay complex.
    """
    return _strided(tensor.detach()) if tensor.is_complex() else readable(tensor)


def components(tensor: Tensor) -> Tensor:
    """Like `wide`, with the real and imaginary parts of complex numbers along one more axis."""
    values = wide(tensor)
    return torch.view_as_real(values) if values.is_complex() else values


def _strided(tensor: Tensor) -> Tensor:
    tensor = local(tensor)
    if tensor.layout is torch.jagged:
        return tensor.values()
    if tensor.is_nested:
        return torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if tensor.is_quantized:
        return tensor.dequantize()
    # Coalesced, or an index that occurs twice would count as two elements.
    if tensor.is_sparse:
        tensor = tensor.coalesce()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def _real(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        tensor = tensor.abs()
    if tensor.is_floating_point():
        # Narrower types round or overflow in sums.
        return tensor.float() if tensor.dtype.itemsize < 4 else tensor
    # float32 cannot hold integers of 32 bits and more exactly.
    return tensor.double() if tensor.dtype.itemsize >= 4 else tensor.float()


def _described(tensor: Tensor) -> str:
    return f"{type(tensor).__name__} of {tensor.dtype}, {tensor.layout}, on {tensor.device}"


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device; what comes from the host is not waited for.

    Examples
    --------
    >>> sent(torch.ones(2), torch.device("cpu"))
    tensor([1., 1.])
    """
    return tensor.to(device, non_blocking=tensor.is_cpu)


def tallied(places: Tensor, n_places: int) -> Tensor:
    """Count each place, int64, without ever waiting for the device.

    Examples
    --------
    >>> tallied(torch.tensor([2, 0, 2], dtype=torch.int32), 4)
    tensor([1, 0, 2, 0])
    """
    one = torch.ones((), dtype=torch.int64, device=places.device)
    counts = torch.zeros(n_places, dtype=torch.int64, device=places.device)
    return counts.index_add_(0, places, one.expand(places.numel()))
