"""An element of a vector as a series of numbers: ``output_histogram[-1]``, of heads ``[5]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from notebook_probe.axis import Axis
from notebook_probe.explorer.messages.selection import Series
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.source import Floats, LevelView, Source, StreamView, Variable
from notebook_probe.record.views.thinning.vector_pictures import axis_of
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["element_key", "element_streams", "read_name"]

_NAME = re.compile(r"(\w+)\[([^\]]+)\]")


def read_name(name: str) -> tuple[str, str] | None:
    """Return the quantity and the key of an element; None for the name of a whole quantity.

    Examples
    --------
    >>> read_name("output_histogram[-1]"), read_name("grad_norm")
    (('output_histogram', '-1'), None)
    """
    found = _NAME.fullmatch(name)
    return (found[1], found[2]) if found else None


def element_key(axis: Axis | None, index: int) -> str:
    """Return the name of an element: its coordinate if it has one, else its index.

    Examples
    --------
    >>> element_key(Axis("bin", {"bin": (-4.0, 0.25)}, "hist"), 1), element_key(None, 5)
    ('0.25', '5')
    """
    return str(index) if axis is None else f"{axis.coords[axis.name][index]:.4g}"


def element_streams(source: Source, series: Iterable[Series]) -> Mapping[str, StreamView]:
    """Streams of the elements among some series."""
    found: dict[str, StreamView] = {}
    wanted = [(module, name, read) for module, name in series if (read := read_name(name))]
    if not wanted:
        return found
    streams = source.elements
    for module, name, (quantity, key) in wanted:
        axis = axis_of(source, quantity)
        for path, stream in streams.items():
            variable = next((one for one in stream.variables if one.name == quantity), None)
            if variable is None:
                continue
            for label in stream.modules:
                owner, index, _ = read_element(label)
                # The coordinate is compared as text, as the user typed or clicked it.
                if owner == module and element_key(axis, index) == key:
                    drawn = Variable(name, variable.units, variable.long_name)
                    found[f"{path} {name} {label}"] = _Element(
                        stream, module, label, quantity, drawn
                    )
    return found


class _Element(WrappedStream):
    """A StreamView of one element."""

    def __init__(
        self, stream: StreamView, module: str, label: str, quantity: str, variable: Variable
    ) -> None:
        super().__init__(stream)
        self._module, self._label = module, label
        self._quantity, self._variable = quantity, variable

    @property
    def name(self) -> str:
        return f"{self._stream.name} {self._variable.name} {self._label}"

    @property
    def modules(self) -> tuple[str, ...]:
        return (self._module,)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return (self._variable,)

    @property
    def levels(self) -> Mapping[int, LevelView]:
        # The levels are by the labels of the elements, not by the module that this stream shows.
        return {}

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._stream.values(self._quantity, start, stop, [self._label])
