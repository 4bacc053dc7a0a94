"""Histograms in bins that never change: signed powers of four, read from exponent bits.

| bin | holds |
|---|---|
| 0 to 30 | negative numbers: class ``k`` is bin ``30 - k`` |
| 31 | zero |
| 32 to 62 | positive numbers: class ``k`` is bin ``32 + k`` |
| 63 | NaN and infinities |

Class ``k`` is ``2**(2k-45) <= |x| < 2**(2k-43)``. Class 0 also takes what is smaller and not zero,
class 30 what is larger and finite. Below ``2**-25``, an edge, numbers vanish in float16.

The bins are the same everywhere and always, so histograms can be compared and added, and nobody
has to look for the range first: of a float32 or a bfloat16 the first byte, which is the sign and
all but one bit of the exponent, says where it belongs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import dense, readable, sent, tallied
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = [
    "BINS",
    "LogHistogram",
    "grad_log_histogram",
    "grad_output_log_histogram",
    "input_log_histogram",
    "log_histogram",
    "output_log_histogram",
    "weight_log_histogram",
]

N_CLASSES = 31
LOWEST = -45
"""Class k begins at ``2**(LOWEST + 2 * k)``."""
NEGATIVE, ZERO, POSITIVE = N_CLASSES - 1, N_CLASSES, N_CLASSES + 1
"""The bins of class 0, and zero between them."""
NONFINITE = 2 * N_CLASSES + 1

CHUNK = 1 << 20
"""Elements counted at a time, so that their keys stay in the cache between two passes."""

PAIRED = 1 << 19
"""Number of keys from which counting in pairs, of 65,536 kinds, is faster."""


def _axis() -> Axis:
    edges = [0.0, *(2.0 ** (LOWEST + 2 * k) for k in range(1, N_CLASSES)), math.inf]
    middles = [2.0 ** (LOWEST + 2 * k + 1) for k in range(N_CLASSES)]
    lower, upper = edges[:-1], edges[1:]

    def mirrored(values: Sequence[float]) -> list[float]:
        return [-value for value in reversed(values)]

    coords = {
        "bin": (*mirrored(middles), 0.0, *middles, math.inf),
        "bin_lo": (*mirrored(upper), 0.0, *lower, math.nan),
        "bin_hi": (*mirrored(lower), 0.0, *upper, math.nan),
    }
    return Axis("bin", coords, group="hist")


BINS = _axis()
"""Middle (a power of two; infinite for what is not finite) and edges of each bin."""


@dataclass(slots=True)
class LogHistogram:
    """Number of elements of one or many tensors in each bin."""

    counts: Tensor
    """Counts, int64 (64,), on the device of the elements."""

    def merge(self, other: LogHistogram) -> LogHistogram:
        """The histogram of both together."""
        return LogHistogram(self.counts + other.counts.to(self.counts.device))


@reduction("log_histogram", cost="sort")
def log_histogram(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> LogHistogram:
    """Count the elements of a tensor, of any shape and dtype, in each of the bins.

    Exact whatever the values. Complex numbers count by their modulus, the elements that a sparse
    tensor leaves out as zeros. For a sharded tensor, this process's shard is counted.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> counts = log_histogram(torch.tensor([0.0, 0.75, 1.5, -1e30, float("nan")])).counts
    >>> [(BINS.coords["bin_lo"][i], int(counts[i])) for i in counts.nonzero().flatten()]
    [(-inf, 1), (0.0, 1), (0.5, 2), (nan, 1)]
    """
    array = dense(tensor)
    if array is not None:
        return LogHistogram(_counts_on_cpu(array.view(np.int32), _FORMATS[torch.float32]))
    if type(tensor) not in _PLAIN or tensor.is_meta or tensor.is_nested:
        tensor = readable(tensor)
    stored = _stored(tensor.detach())
    values = _floats(stored)
    form = _FORMATS[values.dtype]
    bits = _flat(values).view(form.bits)
    counts = _counts_on_cpu(bits.numpy(), form) if bits.is_cpu else _counts_on_device(bits, form)
    if stored.numel() != tensor.numel():
        counts[ZERO] += tensor.numel() - stored.numel()
    return LogHistogram(counts)


_PLAIN = (Tensor, nn.Parameter)


class _Format:
    """Layout of a number type, whose first bits, the key, tell the bin.

    Parameters
    ----------
    bits, unsigned : dtype
        Integers of the same size.
    mantissa : int
        Bits of the mantissa.
    octaves : int
        Powers of two that share a key.
    key : dtype
        Integer that holds a key.
    """

    def __init__(
        self, bits: torch.dtype, unsigned: Any, mantissa: int, octaves: int, key: Any
    ) -> None:
        n_bits = torch.iinfo(bits).bits
        self.bits, self.unsigned, self.key = bits, unsigned, key
        self.shift = mantissa + octaves.bit_length() - 1
        self.n_keys = 1 << (n_bits - self.shift)
        half, bias = self.n_keys // 2, (1 << (n_bits - mantissa - 2)) - 1
        classes = [
            min(max((octaves * place - bias - LOWEST) // 2, 0), N_CLASSES - 1)
            for place in range(half)
        ]
        self.bins = np.array([POSITIVE + k for k in classes] + [NEGATIVE - k for k in classes])
        """Where the numbers of each key belong, but for zero, infinity and NaN."""
        self.first_keys = np.flatnonzero(np.diff(self.bins, prepend=-1))
        """First key of each bin, in the order of keys, in which bins are contiguous."""
        self.bins_by_key = self.bins[self.first_keys]
        sign, infinity = -(1 << (n_bits - 1)), (1 << (n_bits - 1)) - (1 << mantissa)
        self.exceptions: tuple[tuple[int, int, Callable[[Any], Any]], ...] = (
            (0, ZERO, lambda bits: bits),
            (half, ZERO, lambda bits: bits != sign),
            (half - 1, NONFINITE, lambda bits: bits < infinity),
            (2 * half - 1, NONFINITE, lambda bits: (bits >= 0) | (bits < sign + infinity)),
        )
        """Those: the key that they share with others, their bin, and what is zero of their bits."""
        self.shared = [key for key, _, _ in self.exceptions]


_FORMATS = {
    torch.float64: _Format(torch.int64, np.uint64, 52, 1, np.int16),
    torch.float32: _Format(torch.int32, np.uint32, 23, 2, np.uint8),
    torch.bfloat16: _Format(torch.int16, np.uint16, 7, 2, np.uint8),
}
"""Types that are counted directly. The small numbers of float16 share one exponent."""


def _counts_on_cpu(bits: npt.NDArray[Any], form: _Format) -> Tensor:
    chunks = [bits[start : start + CHUNK] for start in range(0, bits.size, CHUNK)]
    buffer = np.empty(min(CHUNK, bits.size), form.key)
    by_key = np.zeros(form.n_keys, np.int64)
    for chunk in chunks:
        keys = buffer[: chunk.size]
        unsigned = chunk.view(form.unsigned)
        np.right_shift(unsigned, form.shift, out=keys, casting="unsafe", dtype=form.unsigned)
        by_key += _counts(keys, form.n_keys)
    counts = np.zeros(BINS.size, np.int64)
    # Keys of one bin are contiguous, so one pass adds them up.
    counts[form.bins_by_key] = np.add.reduceat(by_key, form.first_keys)
    # Keys of ordinary values decide the bin alone; only if the rare keys occur, are the bits read
    # again.
    if any(map(by_key.item, form.shared)):
        for key, place, others in form.exceptions:
            found = (c.size - np.count_nonzero(others(c)) for c in chunks if by_key[key])
            n = sum(map(int, found))
            counts[form.bins[key]] -= n
            counts[place] += n
    return torch.from_numpy(counts)


def _counts(keys: npt.NDArray[Any], n_keys: int) -> npt.NDArray[np.int64]:
    """Count each key; of many one-byte keys, two are counted as one number."""
    if keys.itemsize > 1 or keys.size < PAIRED:
        alone: npt.NDArray[np.int64] = torch.bincount(
            torch.from_numpy(keys), minlength=n_keys
        ).numpy()
        return alone
    # Which byte of a pair comes first does not matter, as both places are added.
    pairs = keys[: keys.size - keys.size % 2].view(np.uint16).astype(np.int32)
    table = torch.bincount(torch.from_numpy(pairs), minlength=n_keys**2).numpy()
    table = table.reshape(n_keys, n_keys)
    counts: npt.NDArray[np.int64] = table.sum(axis=0) + table.sum(axis=1)
    counts[keys[pairs.size * 2 :]] += 1
    return counts


def _counts_on_device(bits: Tensor, form: _Format) -> Tensor:
    """The same without ever waiting for the device."""
    device = bits.device
    keys = (bits >> form.shift) & (form.n_keys - 1)
    by_key = tallied(keys.int(), form.n_keys)
    counts = torch.zeros(BINS.size, dtype=torch.int64, device=device)
    counts.index_add_(0, sent(torch.from_numpy(form.bins), device), by_key)
    for key, place, others in form.exceptions:
        n = bits.numel() - torch.count_nonzero(others(bits))
        counts[int(form.bins[key])] -= n
        counts[place] += n
    return counts


def _stored(tensor: Tensor) -> Tensor:
    """Return the elements in memory; those that a sparse tensor leaves out are zero."""
    if tensor.layout is torch.strided:
        return tensor
    if tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    if tensor.layout in _COMPRESSED:
        return tensor.values()
    return tensor.to_dense()


_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def _floats(tensor: Tensor) -> Tensor:
    """The same numbers in a type of `_FORMATS`: what is rounded stays within its bin."""
    if tensor.is_complex():
        wide = tensor.to(torch.complex128)
        # hypot neither overflows nor underflows in between, as the root of a sum of squares would.
        return torch.hypot(wide.real, wide.imag)
    if tensor.dtype not in _FORMATS:
        return tensor.float()
    return tensor.resolve_neg()


def _flat(tensor: Tensor) -> Tensor:
    """Return all elements in memory order, copied only where they are not dense in memory."""
    # In memory order, a permuted tensor needs no copy; counts do not depend on the order.
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    return tensor.reshape(-1)


@quantity(axis=BINS, source="definition", question=questions.LEARNING)
def weight_log_histogram(weight_log_histogram: LogHistogram) -> Tensor:
    """Counts of the weights as the forward used them, ``#{w in bin}``.

    The bins are powers of four of either sign, smaller ones towards zero in the middle: a bell
    around zero shows as two humps, one per sign, and slowly widens as a rule. A growing bin at 0
    is pruning; humps that move inwards are decay; a far tail is a few weights that run away.

    Warnings
    --------
    The bins are as wide as their values are large, so heights are no density. NaN and
    infinities share the last bin.
    """
    return weight_log_histogram.counts


@quantity(axis=BINS, source="definition", question=questions.SIGNAL)
def grad_log_histogram(grad_log_histogram: LogHistogram) -> Tensor:
    """Counts of the gradient's elements as applied, ``#{g in bin}``.

    The bins are powers of four of either sign, smaller ones towards zero in the middle. Two humps,
    one per sign, are usual: moving towards the middle the gradient vanishes, moving outwards it
    explodes; further humps are several kinds of units or layers.

    Warnings
    --------
    The bins are as wide as their values are large, so heights are no density. All parameters below
    the module are counted.
    """
    return grad_log_histogram.counts


@quantity(axis=BINS, source="definition", question=questions.SIGNAL)
def input_log_histogram(input_log_histogram: LogHistogram) -> Tensor:
    """Counts of the inputs, ``#{x in bin}``.

    The bins are powers of four of either sign, smaller ones towards zero in the middle.
    At the first layer, the data as the network gets it: whether it is centred, of which size, how
    much of it is exactly 0.

    Warnings
    --------
    The bins are as wide as their values are large, so heights are no density.
    """
    return input_log_histogram.counts


@quantity(axis=BINS, source="definition", question=questions.SIGNAL)
def output_log_histogram(output_log_histogram: LogHistogram) -> Tensor:
    """Counts of the outputs, ``#{y in bin}``.

    The bins are powers of four of either sign, smaller ones towards zero in the middle. Shows what
    mean and deviation hide: a far tail, a block at exactly 0 after a ReLU, at -1 and 1 after a
    saturated tanh.

    Warnings
    --------
    The bins are as wide as their values are large, so heights are no density. Only this step's
    batch is counted.
    """
    return output_log_histogram.counts


@quantity(axis=BINS, source="https://arxiv.org/abs/1710.03740", question=questions.RANGE)
def grad_output_log_histogram(grad_output_log_histogram: LogHistogram) -> Tensor:
    """Counts of the gradients that reach the output, ``#{dL/dy in bin}``.

    The bins are powers of four of either sign, smaller ones towards zero in the middle. Gradients
    below ``2**-25`` would be lost in float16 without loss scaling; a loss scale can grow until the
    largest bin in use reaches the maximum of float16.

    Warnings
    --------
    Under a gradient scaler these are scaled gradients, as they are in the backward pass.
    """
    return grad_output_log_histogram.counts
