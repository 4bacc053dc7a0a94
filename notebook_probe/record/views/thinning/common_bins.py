"""Histograms whose bins widen from step to step, in the widest bins of each module so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.axis import Axis
from notebook_probe.one_thread import one_thread
from notebook_probe.record.format.elements import element_labels, read_element
from notebook_probe.record.format.source import Floats, StreamView
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["CommonBins", "Widest"]


class Widest:
    """The widest bins of each module, found as a stream grows; widths are powers of two apart."""

    def __init__(self, quantity: str, axis: Axis) -> None:
        self._quantity, self._size = quantity, axis.size
        self._n_seen = 0
        self.widths: dict[str, float] = {}

    def read_new(self, stream: StreamView) -> None:
        """Take in the rows that are new."""
        n_rows, modules = stream.n_rows, _owners(stream)
        if n_rows > self._n_seen and modules:
            labels = [element_labels(module, self._size)[-1] for module in modules]
            rows = stream.values(self._quantity, self._n_seen, n_rows, labels)
            for module, column in zip(modules, rows.T, strict=True):
                known = column[np.isfinite(column) & (column > 0)]
                if known.size:
                    widest = max(float(known.max()), self.widths.get(module, 0.0))
                    self.widths[module] = widest
            self._n_seen = n_rows


class CommonBins(WrappedStream):
    """A StreamView of one quantity's counts; changes its version when bins have widened."""

    def __init__(self, stream: StreamView, axis: Axis, widths: dict[str, float]) -> None:
        super().__init__(stream)
        self._axis, self._widths = axis, widths
        self._modules = _owners(stream)

    @property
    def version(self) -> tuple[object, ...]:
        return (*self._stream.version, *sorted(self._widths.items()))

    @property
    def modules(self) -> tuple[str, ...]:
        size = self._axis.size - 1
        return tuple(label for one in self._modules for label in element_labels(one, size))

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        """Return the values of all modules."""
        labels = [one for each in self._modules for one in element_labels(each, self._axis.size)]
        raw = self._stream.values(quantity, start, stop, labels)
        vectors = raw.reshape(len(raw), len(self._modules), self._axis.size)
        counts = np.array(vectors[..., :-1])
        for place, module in enumerate(self._modules):
            widest = self._widths.get(module, 0.0)
            widths = vectors[:, place, -1]
            for width in np.unique(widths[np.isfinite(widths) & (widths > 0) & (widths < widest)]):
                rows = widths == width
                moved = merging(self._axis, round(widest / float(width)))
                with one_thread():  # a training may run at the same time
                    counts[rows, place] = counts[rows, place] @ moved
        return counts.reshape(len(raw), -1)


def merging(axis: Axis, factor: int) -> npt.NDArray[np.float32]:
    """Return the matrix that merges counts to bins ``factor`` times as wide."""
    lower = np.array(axis.coords[f"{axis.name}_lo"][:-1])
    size = len(lower)
    moved = np.eye(size, dtype=np.float32)
    finite = np.flatnonzero(np.isfinite(lower))
    zero = int(finite[np.flatnonzero(lower[finite] == 0)[0]])
    for place in finite.tolist():
        moved[place] = 0
        moved[place, zero + int(np.floor(lower[place] / factor))] = 1
    return moved


def _owners(stream: StreamView) -> tuple[str, ...]:
    return tuple(dict.fromkeys(read_element(label)[0] for label in stream.modules))
