"""Recording of values with per-module shapes: vectors of different lengths, arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.elements import element_labels
from notebook_probe.record.format.lookup import quantity_place
from notebook_probe.record.format.missing import NOT_MEASURED, as_measured
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Floats, Variable
from notebook_probe.record.read.stored import MOST_NAMES
from notebook_probe.record.write.streams.stream import StreamWriter

__all__ = ["ArrayWriter", "RaggedWriter", "check_shape"]


class RaggedWriter:
    """Per-module vectors of one schedule; made by `RecordWriter.ragged`.

    A module gets its columns when it is first recorded, and further ones when the length of its
    vectors changes.
    """

    def __init__(self, stream: StreamWriter) -> None:
        self.stream = stream
        self._places: dict[tuple[str, int], slice] = {}

    def extend(self, variables: Sequence[Variable]) -> None:
        """Append quantities; raises QuantityError for a name that cannot be."""
        self.stream.extend(variables=variables)

    def record(
        self, step: int, time_ms: int, values: Mapping[tuple[str, str], npt.ArrayLike]
    ) -> bool:
        """Record a step's vectors.

        Parameters
        ----------
        step, time_ms : int
            See `StreamWriter.record`.
        values : mapping
            Quantity and module to vector, (size,) of real numbers.

        Returns
        -------
        bool
            False when the row was dropped, and counted.

        Raises
        ------
        UnknownNameError
            For a quantity that this stream was not extended by.
        ValueError
            It is not a vector, or the step does not grow.
        """
        return self.stream.record(step, time_ms, self.row(values))

    def row(self, values: Mapping[tuple[str, str], npt.ArrayLike]) -> Floats:
        """Return a step's vectors in the form of the stream; adds columns for new ones."""
        index = self.stream.variable_index
        vectors = {
            (quantity_place(self.stream.path, index, quantity), module_label(module)): _vector(
                quantity, module, given
            )
            for (quantity, module), given in values.items()
        }
        self._extend((module, len(vector)) for (_, module), vector in vectors.items())
        row = np.full(self.stream.shape, NOT_MEASURED, np.float32)
        for (variable, module), vector in vectors.items():
            row[variable, self._places[module, len(vector)]] = vector
        return row

    def _extend(self, vectors: Iterable[tuple[str, int]]) -> None:
        """Add columns for new vectors, all at once: the axis is made again each time."""
        new = dict.fromkeys(vector for vector in vectors if vector not in self._places)
        if not new:
            return
        n_columns = len(self.stream.module_index)
        labels: dict[tuple[str, int], list[str]] = {}
        for module, size in new:
            n_columns += size
            if n_columns > MOST_NAMES:
                raise ValueError(
                    f"a vector of {size} numbers for {module!r} in {self.stream.path!r}; at most "
                    f"{MOST_NAMES} places are kept there, and each new length needs its own"
                )
            labels[module, size] = element_labels(module, size)
        self.stream.extend([label for own in labels.values() for label in own])
        for vector, own in labels.items():
            first = self.stream.module_index[own[0]]
            self._places[vector] = slice(first, first + len(own))


class ArrayWriter:
    """Arrays of one quantity at one module; made by `RecordWriter.arrays`."""

    def __init__(self, stream: StreamWriter) -> None:
        self.stream = stream

    def record(self, step: int, time_ms: int, array: npt.ArrayLike) -> bool:
        """Record one array of real numbers; returns False when it was dropped, and counted.

        Raises
        ------
        ValueError
            For an array of another shape, or a step that does not grow.
        """
        cells = as_measured(array)
        if cells.shape != self.stream.kind.cell:
            raise ValueError(
                f"an array of shape {cells.shape} in {self.stream.path!r}; "
                f"{self.stream.kind.cell} is recorded there"
            )
        return self.stream.record(step, time_ms, cells[None, None])


def _vector(quantity: str, module: str, values: npt.ArrayLike) -> Floats:
    vector = as_measured(values)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"{quantity} of {module!r} has shape {vector.shape}; a vector is expected")
    return vector


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Raise ValueError unless there can be an array of ``shape``."""
    if not shape or min(shape) < 1:
        raise ValueError(f"an array of shape {tuple(shape)}; at least one element is expected")
    return tuple(shape)
