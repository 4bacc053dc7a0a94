"""Vectors as streams of numbers, a column for each element: pictures read them as any other."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.record.format.elements import element_labels, read_element
from notebook_probe.record.format.source import Floats, VectorView
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["Elements"]


class Elements(WrappedStream):
    """A StreamView of vectors whose columns are elements: ``conv1[3/64]``."""

    def __init__(self, stream: VectorView) -> None:
        super().__init__(stream)
        self._size = stream.axis.size

    @property
    def modules(self) -> tuple[str, ...]:
        labels = (element_labels(module, self._size) for module in self._stream.modules)
        return tuple(label for of_module in labels for label in of_module)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        if modules is None:
            vectors = self._stream.values(quantity, start, stop)
            return vectors.reshape(len(vectors), -1)
        places = [read_element(label)[:2] for label in modules]
        owners = list(dict.fromkeys(module for module, _ in places))
        vectors = self._stream.values(quantity, start, stop, owners)
        rows = {module: row for row, module in enumerate(owners)}
        columns = [rows[module] for module, _ in places], [index for _, index in places]
        return vectors[:, *columns]
