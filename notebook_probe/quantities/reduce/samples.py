"""A tensor seen as samples: one row per sample or position, one column per channel.

Which axis holds the channels depends on the module that the tensor enters or leaves: on its kind,
or on what ``watch(channel_axis=...)`` says of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.model.channel_axes import channel_axis_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities.reduce.arrays import readable

__all__ = [
    "channel_axis",
    "channelled",
    "extremes",
    "refuse_indices",
    "sample_blocks",
    "sampled_rows",
    "samples",
    "traced_channels",
    "traced_rows",
    "widest_type",
]

BLOCK = 1 << 17
"""Elements of a block, where that makes enough rows: so much stays in the cache."""

# Drawing without replacement needs a permutation of all; with so many entries, repetitions are
# rare.
SHUFFLED = 1 << 22
"""Number of entries from which drawing with replacement is as good."""

AXES: dict[tuple[type[nn.Module], ...], int] = {
    (nn.Conv1d, nn.ConvTranspose1d, nn.InstanceNorm1d): -2,
    (nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d): -3,
    (nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d): -4,
    (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.GroupNorm): 1,
    (nn.Linear, nn.Bilinear, nn.LayerNorm, nn.RMSNorm, nn.Embedding, nn.EmbeddingBag): -1,
    (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention): -1,
}
"""Counted from the end where a module also takes a single sample, without a batch axis."""


def channel_axis(module: nn.Module | None, shape: Sequence[int]) -> int:
    """Axis of the channels in a tensor of this shape, of two axes at least, at ``module``.

    For an unknown module it is the last axis in 3-D (batch, position, channel), else axis 1.

    Examples
    --------
    >>> channel_axis(nn.Conv2d(3, 8, 1), (9, 3, 5, 5)), channel_axis(nn.Linear(3, 8), (9, 5, 5, 3))
    (1, 3)
    """
    module, n_dims = unwrapped(module), len(shape)
    axis = channel_axis_of(module) if module is not None else None
    if axis is None:
        axis = _axis_of_kind(module, shape)
    return axis % n_dims if -n_dims <= axis < n_dims else n_dims - 1


def _axis_of_kind(module: nn.Module | None, shape: Sequence[int]) -> int:
    kind: Any = type(module)  # mypy takes the hash of its instances for its own
    axis = _axis_of(kind)
    if axis is None:
        return 1 if len(shape) != 3 else -1
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        width = module.normalized_shape[-1]
        if shape[-1] != width == shape[1]:  # one that swaps the axes itself, as in a ConvNeXt
            return 1
    return axis


# Cached by the class: this is asked at every call of a module.
@cache
def _axis_of(kind: Any) -> int | None:
    return next((axis for kinds, axis in AXES.items() if issubclass(kind, kinds)), None)


def samples(
    tensor: Tensor, module: nn.Module | None, widest: int | None = None
) -> tuple[int, Iterator[Tensor]]:
    """Return the number of channels, 1 at least, and a call's rows (sample, channel).

    The rows come block by block, copies in float64; those of a nested tensor are of all its parts.
    With more than ``widest`` channels, ``widest`` rows are drawn.

    Raises
    ------
    UnreadableError
        A tensor without values, of a kind nobody can convert, or of indices.

    Examples
    --------
    >>> width, blocks = samples(torch.zeros(2, 3, 4, 4), nn.Conv2d(3, 8, 1))
    >>> width, [block.shape for block in blocks]
    (3, [torch.Size([32, 3])])
    """
    values, axis = channelled(tensor, module)
    if widest is not None and values.shape[axis] > widest:
        rows = values.movedim(axis, -1).flatten(0, -2)
        values, axis = sampled_rows(rows, widest), 1
    return max(1, values.shape[axis]), sample_blocks(values, axis, widest_type(values))


def channelled(tensor: Tensor, module: nn.Module | None) -> tuple[Tensor, int]:
    """Return the numbers of a tensor at a call of ``module``, and their axis of channels.

    Not a copy where none is needed; of a nested tensor all parts, one after the other.

    Raises
    ------
    UnreadableError
        A tensor without values, of a kind nobody can convert, or of indices.

    Examples
    --------
    >>> values, axis = channelled(torch.zeros(2, 3, 4, 4), nn.Conv2d(3, 8, 1))
    >>> values.shape[axis]
    3
    """
    if tensor.is_nested:
        tensor = torch.cat([*tensor.detach().unbind()])
    refuse_indices(tensor, module)
    values = readable(tensor)
    if values.dim() < 2:
        values = torch.atleast_2d(values)
    return values, channel_axis(module, values.shape)


def traced_channels(tensor: Tensor, module: nn.Module | None) -> tuple[Tensor, list[int]]:
    """Return a tensor of two axes at least, and all of them but that of the channels.

    In operations that torch traces, and in the tensor's own type; complex numbers become their
    moduli. A compiler reads along these axes in the order of the memory.

    Raises
    ------
    UnreadableError
        A tensor of indices.

    Examples
    --------
    >>> values, axes = traced_channels(torch.zeros(2, 3, 4, 4), nn.Conv2d(3, 8, 1))
    >>> values.sum(axes).shape, axes
    (torch.Size([3]), [0, 2, 3])
    """
    refuse_indices(tensor, module)
    plain = tensor.detach()
    values = torch.atleast_2d(plain.abs() if plain.is_complex() else plain)
    axis = channel_axis(module, values.shape)
    return values, [one for one in range(values.dim()) if one != axis]


def traced_rows(tensor: Tensor, module: nn.Module | None) -> Tensor:
    """Return the rows (sample, channel) of a tensor, as `traced_channels` gives it.

    Examples
    --------
    >>> traced_rows(torch.zeros(2, 3, 4, 4), nn.Conv2d(3, 8, 1)).shape
    torch.Size([32, 3])
    """
    values, others = traced_channels(tensor, module)
    (axis,) = {*range(values.dim())} - {*others}
    return values.movedim(axis, -1).reshape(-1, values.shape[axis])


def widest_type(values: Tensor) -> torch.dtype:
    """float64, where the device has it."""
    return torch.float64 if values.device.type != "mps" else torch.float32


def extremes(values: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the largest and the smallest number of each channel, NaN where one is.

    Two passes in the tensor's own type that copy nothing.

    Examples
    --------
    >>> extremes(torch.tensor([[0.0, -1.0], [2.0, -3.0]]), axis=1)
    (tensor([ 2., -1.]), tensor([ 0., -3.]))
    """
    largest = smallest = values
    if axis:  # over the first axis at once, if memory has that order
        largest, smallest, axis = torch.amax(values, 0), torch.amin(values, 0), axis - 1
    others = [one for one in range(largest.dim()) if one != axis]
    if others:
        largest, smallest = torch.amax(largest, others), torch.amin(smallest, others)
    return largest, smallest


def refuse_indices(tensor: Tensor, module: nn.Module | None) -> None:
    """Raise UnreadableError for numbers that are row or class indices: none is the larger one."""
    if tensor.is_floating_point():
        return
    is_looked_up = isinstance(unwrapped(module), nn.Embedding | nn.EmbeddingBag)
    # torch has int64 for indices of rows and classes; their size means nothing.
    if is_looked_up or tensor.dtype is torch.int64:
        raise UnreadableError(f"{tensor.dtype} numbers are indices, which have no channels")


def sample_blocks(tensor: Tensor, axis: int, dtype: torch.dtype) -> Iterator[Tensor]:
    """Yield the rows (sample, channel) of a tensor, block by block, each a copy in ``dtype``.

    Fewer rows than four times the channels come in one block. An empty tensor gives none.

    Examples
    --------
    >>> images = torch.arange(24.0).reshape(2, 3, 2, 2)
    >>> [block.shape for block in sample_blocks(images, 1, torch.float64)]
    [torch.Size([8, 3])]
    """
    if tensor.numel() == 0:
        return
    tensor = torch.atleast_2d(tensor)
    width = tensor.shape[axis]
    n_rows = max(4 * width, BLOCK // width)
    # Channels are next to each other in memory: rows are plain slices.
    if tensor.stride(axis) == 1:
        rows = tensor.movedim(axis, -1).reshape(-1, width)
        for block in rows.split(n_rows):
            yield block.to(dtype, copy=True)
    else:
        # Else channel by channel, as moving the axis would copy against the order of memory.
        columns = tensor.movedim(axis, 0)
        per_item = columns[0, 0].numel()
        for piece in columns.split(max(1, n_rows // per_item), dim=1):
            copy = piece.to(dtype, copy=True, memory_format=torch.contiguous_format)
            yield copy.reshape(width, -1).T


def sampled_rows(values: Tensor, most: int) -> Tensor:
    """Draw at most that many entries along the first axis; the same places for the same sizes.

    No random number of torch's own is drawn.

    Examples
    --------
    >>> sampled_rows(torch.arange(100), 3).shape, sampled_rows(torch.arange(2), 3)
    (torch.Size([3]), tensor([0, 1]))
    """
    if most >= len(values):
        return values
    return values[_places(len(values), most).to(values.device, non_blocking=True)]


@lru_cache(maxsize=32)
def _places(n: int, of_them: int) -> Tensor:
    # The seed depends on the size only: the same places at every step, so that values can be
    # compared.
    generator = torch.Generator().manual_seed(n)
    if n <= SHUFFLED:
        return torch.randperm(n, generator=generator)[:of_them].clone()
    return torch.randint(n, (of_them,), generator=generator)
