"""Measuring tensors on an accelerator: a few kernels for many tensors, and nothing waits.

A small tensor is copied at once into a row of a buffer, as the model may write over it; when the
buffer is full, or when the numbers are copied to the host, all its rows are reduced together. A
large tensor is reduced at once, slab by slab. The remaining computation with the sums is done on
the host.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.stat import Parts, Stat, row_of_numbers

__all__ = [
    "NORM",
    "NOTHING",
    "DeviceStat",
    "Parts",
    "device_stat",
    "device_stats",
    "difference_stats",
    "one_row",
    "pooled",
]

N_SUMS = 6
"""Maximum number of sums of a row."""

SLAB = 1 << 21
"""Elements reduced at a time: as float64 they take 16 MB, little compared with a training."""

ROW = 1 << 16
"""Elements of a row of a slab."""

SMALL = 1 << 18
"""Elements of a tensor up to which launching kernels takes longer than reading it does."""

BUFFER, MOST_ROWS = 1 << 20, 64
"""Elements and rows of a buffer of small tensors."""

NOTHING = Stat(0, 0.0, spread=0.0, n_zero=0.0, n_nonfinite=0.0)

_PLAIN = (Tensor, torch.nn.Parameter)
NORM = frozenset({"sumsq"})


class SumsSource(Protocol):
    """Sums of rows that are, or will be, on a device."""

    def sums(self) -> Tensor:
        """Return the sums by row, (sum, row), float64; always the same tensor."""


@dataclass(frozen=True, slots=True)
class _Reduced:
    """Sums that were computed."""

    found: Tensor

    def sums(self) -> Tensor:
        return self.found


@dataclass(frozen=True, slots=True)
class _TensorRows:
    """Rows of one size that belong to one tensor."""

    source: SumsSource
    start: int
    stop: int
    size: int

    def norms(self) -> Tensor:
        """Return the norm of each row."""
        return self.source.sums()[0, self.start : self.stop]

    def columns(self, sums: Any) -> list[list[float]]:
        """Return the sums of each row; NaN where they could not be copied."""
        if not isinstance(sums, Tensor):
            return [[math.nan] * N_SUMS] * (self.stop - self.start)
        columns: list[list[float]] = sums[:, self.start : self.stop].T.tolist()
        return columns


@dataclass(frozen=True, slots=True)
class _GraphRow(_TensorRows):
    """Numbers that a compiled graph has handed out of one tensor, from which a row follows."""

    parts: Parts

    def norms(self) -> Tensor:
        numbers = self.source.sums()[:, 0]
        if "moments" not in self.parts:
            return numbers[:1].sqrt()
        shift, total, squares = numbers[:3]
        return (squares + 2.0 * shift * total + self.size * shift.square()).sqrt()[None]

    def columns(self, sums: Any) -> list[list[float]]:
        # Without `super()`: a class with slots is made a second time.
        [numbers] = _TensorRows.columns(self, sums)
        return [row_of_numbers(numbers, self.size, self.parts)]


@dataclass(frozen=True, slots=True)
class DeviceStat:
    """A `Stat` whose sums are on a device, or will be computed there.

    Merging computes nothing: the rows of both are kept, and merged as numbers on the host.
    """

    n: int
    parts: Parts
    rows: tuple[_TensorRows, ...]
    here: Stat | None = None
    """Measurement of the tensors on the host."""

    def merge(self, other: DeviceStat | Stat) -> DeviceStat:
        """Return the state of both together."""
        if isinstance(other, Stat):
            here = other if self.here is None else self.here.merge(other)
            return replace(self, n=self.n + other.n, here=here)
        merged = self if other.here is None else self.merge(other.here)
        rows = (*self.rows, *other.rows)
        return replace(merged, n=self.n + other.n, parts=self.parts | other.parts, rows=rows)

    @property
    def sumsq(self) -> Tensor:
        """Sum of squares, a 0-d tensor on the device."""
        parts = [one.norms() for one in self.rows]
        norms = parts[0] if len(parts) == 1 else torch.cat(parts)
        total = norms[0].square() if len(norms) == 1 else norms.square().sum()
        return total if self.here is None else total + self.here.sumsq

    def mapped(self, change: Callable[[Tensor], Any]) -> DeviceStat | Stat:
        """Change the tensors that hold the sums; once they are on the host, return the `Stat`."""
        changed = [change(one.source.sums()) for one in self.rows]
        if all(isinstance(one, Tensor) and not one.is_cpu for one in changed):
            rows = [
                replace(one, source=_Reduced(sums))
                for one, sums in zip(self.rows, changed, strict=True)
            ]
            return replace(self, rows=tuple(rows))
        found = [
            (one.size, column)
            for one, sums in zip(self.rows, changed, strict=True)
            for column in one.columns(sums)
        ]
        stat = pooled(found, self.parts)
        return stat if self.here is None else self.here.merge(stat)


def one_row(numbers: Tensor, n: int, parts: Parts) -> DeviceStat:
    """Return the state of a tensor of ``n`` elements from what `traced_sums` has found."""
    return DeviceStat(n, parts, (_GraphRow(_Reduced(numbers[:, None]), 0, 1, n, parts),))


def pooled(rows: Sequence[tuple[int, Sequence[float]]], parts: Parts) -> Stat:
    """Return the Stat of all rows, of their sizes and sums in the order of `_sums_of_rows`."""
    sizes = [size for size, _ in rows]
    by_sum = zip(*(column for _, column in rows), strict=True)
    n = sum(sizes)
    stat = Stat(n, sum(norm * norm for norm in next(by_sum)))
    if "moments" in parts:
        totals, variances = next(by_sum), next(by_sum)
        stat.mean = sum(totals) / n
        stat.spread = sum(
            # Sums about the common mean from those of each row: nothing large is subtracted.
            size * (variance + (total / size - stat.mean) ** 2)
            for size, total, variance in zip(sizes, totals, variances, strict=True)
        )
    if "zeros" in parts:
        stat.n_zero = n - sum(next(by_sum))
    if "nonfinite" in parts:
        stat.n_nonfinite = sum(next(by_sum))
    if "largest" in parts:
        # max() of a list with NaN depends on the order, and NaN has to win.
        stat.largest = max(next(by_sum), key=lambda value: math.inf if value != value else value)
    return stat


def _sums_of_rows(rows: Tensor, parts: Parts) -> Tensor:
    """Reduce rows, (row, element), in float64: no shift is needed, and no square overflows.

    The norm of order 0 counts what is not zero, NaN among it, in one kernel.
    """
    wide = rows.double()
    found = [torch.linalg.vector_norm(wide, dim=1)]
    if "moments" in parts:
        found += [wide.sum(1), wide.var(1, correction=0)]
    if "zeros" in parts:
        found.append(torch.linalg.vector_norm(wide, 0, dim=1))
    if "nonfinite" in parts:
        # x - x is NaN where x is not finite, and 0 elsewhere; NaN counts as not zero.
        found.append(torch.linalg.vector_norm(wide - wide, 0, dim=1))
    if "largest" in parts:
        found.append(torch.linalg.vector_norm(wide, math.inf, dim=1))
    return torch.stack(found)


# ---------------------------------------------------------------- tensors of calls


def device_stat(tensor: Tensor, parts: Parts) -> DeviceStat | Stat:
    """Measure a tensor that the model may overwrite, or release, right afterwards.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.
    """
    flat = _flat(tensor)
    if not flat.numel():
        return NOTHING
    if flat.numel() <= SMALL:
        return DeviceStat(flat.numel(), parts, (_gathered(flat, parts),))
    return DeviceStat(flat.numel(), parts, tuple(_reduced_at_once(flat, parts)))


def _reduced_at_once(flat: Tensor, parts: Parts) -> Iterator[_TensorRows]:
    if parts == NORM:  # reads it where it is
        yield _TensorRows(_Reduced(_norms([flat])), 0, 1, flat.numel())
        return
    # Rows of one length, so that one kernel reduces all of a slab.
    whole = flat.numel() - flat.numel() % ROW
    for start in range(0, whole, SLAB):
        rows = flat[start : min(start + SLAB, whole)].view(-1, ROW)
        yield _TensorRows(_Reduced(_sums_of_rows(rows, parts)), 0, len(rows), ROW)
    if whole < flat.numel():
        rest = flat[whole:]
        yield _TensorRows(_Reduced(_sums_of_rows(rest[None], parts)), 0, 1, rest.numel())


class _Gathering:
    """Copies of small tensors of one size, reduced together; the copies are gone then."""

    def __init__(self, like: Tensor, parts: Parts, stream: torch.cuda.Stream | None) -> None:
        size = like.numel()
        with torch.inference_mode(False):  # as it will be written outside, too
            buffer = like.new_empty(min(MOST_ROWS, BUFFER // size), size)
        self._buffer: Tensor | None = buffer
        self._parts, self._stream = parts, stream
        self._n = 0
        self._sums: Tensor | None = None
        self._lock = threading.Lock()  # a reader may ask while the training thread adds

    def add(self, flat: Tensor) -> int | None:
        """Copy a tensor; return its row, or None where there is no room."""
        with self._lock:
            buffer, row = self._buffer, self._n
            if buffer is None or row == len(buffer):
                return None
            self._n += 1
            # Kernels on the same stream are ordered, so the copy needs no synchronization.
            buffer[row].copy_(flat)
            return row

    def sums(self) -> Tensor:
        """Reduce the rows, on the stream that filled them, and add no more."""
        with self._lock:
            buffer, self._buffer = self._buffer, None
            if self._sums is None and buffer is not None:
                self._sums = _on_stream(self._stream, buffer[: self._n], self._parts)
            assert self._sums is not None
            return self._sums


@torch.no_grad()
def _on_stream(stream: torch.cuda.Stream | None, rows: Tensor, parts: Parts) -> Tensor:
    if stream is None:
        return _sums_of_rows(rows, parts)
    current = torch.cuda.current_stream(rows.device)
    with torch.cuda.stream(stream):
        sums = _sums_of_rows(rows, parts)
    # A reader of the sums on another stream has to wait for the one that computed them.
    if stream != current:
        current.wait_stream(stream)
        # Tells the allocator that the memory is in use on this stream, too.
        sums.record_stream(current)
    return sums


_gatherings: WeakValueDictionary[tuple[Any, ...], _Gathering] = WeakValueDictionary()
"""Buffers with room, by what their rows have in common; kept by the states that need them."""


def _gathered(flat: Tensor, parts: Parts) -> _TensorRows:
    stream = torch.cuda.current_stream(flat.device) if flat.is_cuda else None
    # A row of another stream would have to be waited for, hence the stream in the key.
    key = flat.device, flat.dtype, flat.numel(), parts, stream
    gathering = _gatherings.get(key)
    row = None if gathering is None else gathering.add(flat)
    if gathering is None or row is None:
        gathering = _gatherings[key] = _Gathering(flat, parts, stream)
        row = gathering.add(flat)
        assert row is not None
    return _TensorRows(gathering, row, row + 1, flat.numel())


# ---------------------------------------------------------------- tensors of parameters


def device_stats(tensors: Sequence[Tensor], parts: Parts) -> list[DeviceStat | Stat]:
    """Measure tensors that stay as they are meanwhile: those alike together, without a copy."""
    flats = [_flat(tensor) for tensor in tensors]
    found: list[DeviceStat | Stat] = [NOTHING] * len(flats)
    if parts == NORM:
        for places in _alike(flats, lambda one: (one.device, one.dtype)):
            source = _Reduced(_norms([flats[place] for place in places]))
            for column, place in enumerate(places):
                n = flats[place].numel()
                found[place] = DeviceStat(n, parts, (_TensorRows(source, column, column + 1, n),))
        return found
    for places in _alike(flats, lambda one: (one.device, one.dtype, one.numel())):
        size = flats[places[0]].numel()
        if size > SMALL:
            for place in places:
                found[place] = device_stat(flats[place], parts)
            continue
        for few in _groups(places, max(1, SLAB // size)):
            rows = torch.stack([flats[place] for place in few])
            source = _Reduced(_sums_of_rows(rows, parts))
            for row, place in enumerate(few):
                found[place] = DeviceStat(size, parts, (_TensorRows(source, row, row + 1, size),))
    return found


def difference_stats(
    news: Sequence[Tensor], olds: Sequence[Tensor], parts: Parts
) -> list[DeviceStat | Stat]:
    """Measure ``new - old`` of plain tensors of one device and type, written into the olds.

    In float32 or wider: the difference of what is narrower is computed apart.
    """
    # Subtracting in half precision would lose the small differences that are asked for.
    if olds[0].dtype.itemsize < 4:
        return [
            device_stat(new.detach().float().sub_(old), parts)
            for new, old in zip(news, olds, strict=True)
        ]
    olds = [*olds]
    with torch.no_grad():
        # In place and for all at once: one launch instead of one per parameter, and no new memory.
        torch._foreach_sub_(olds, [new.detach() for new in news])
        # The sign matters to the mean alone.
        if "moments" in parts:
            torch._foreach_neg_(olds)
    return device_stats(olds, parts)


def _norms(flats: list[Tensor]) -> Tensor:
    """Norms of all, (1, tensor): a few kernels, each of which sums in float64 what it reads."""
    return torch.stack(torch._foreach_norm(flats, 2, torch.float64))[None]


def _flat(tensor: Tensor) -> Tensor:
    """All elements in memory order, which sums do not care for; a view wherever there is one."""
    plain = tensor.detach() if _is_read_as_it_is(tensor) else readable(tensor)
    if not plain.is_contiguous():
        order = sorted(range(plain.dim()), key=plain.stride().__getitem__, reverse=True)
        plain = plain.permute(order)
    return plain.reshape(-1)


def _is_read_as_it_is(tensor: Tensor) -> bool:
    """Return whether kernels read its type; few of them read floats of 8 bits."""
    is_plain = type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_meta
    return is_plain and tensor.is_floating_point() and tensor.dtype.itemsize > 1


def _alike(flats: Sequence[Tensor], kind: Callable[[Tensor], Any]) -> Iterable[list[int]]:
    """Places of tensors that one kernel can read, without those that are empty."""
    groups: dict[Any, list[int]] = {}
    for place, flat in enumerate(flats):
        if flat.numel():
            groups.setdefault(kind(flat), []).append(place)
    return groups.values()


def _groups(places: list[int], most: int) -> Iterator[list[int]]:
    for start in range(0, len(places), most):
        yield places[start : start + most]
