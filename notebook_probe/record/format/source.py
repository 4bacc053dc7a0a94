"""Interface for all readers: a run, live or finished, as a Source.

The Explorer, the figures and the user's analysis read only this. A live run, the writer's own
memory and an opened record all provide it, so no reader has to know which one it has.

A *stream* is the step axis of one schedule: rows appear when it is due, columns are
``(quantity, module)``. Rows below ``n_rows`` change only with ``version``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from notebook_probe.axis import Axis

__all__ = [
    "ALIASES",
    "LIES_BETWEEN",
    "ROOT",
    "USUAL",
    "ArrayView",
    "ChunkGrid",
    "Event",
    "Floats",
    "LevelView",
    "ModuleRow",
    "Source",
    "Steps",
    "StreamView",
    "Thinned",
    "Variable",
    "VectorView",
    "check_opened",
    "read_aliases",
]

ROOT = "(root)"
"""Name of the root module (path ``""``) on module axes, where ``""`` is the fill value."""

Floats = npt.NDArray[np.float32]
Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module of the watched model; rows are in forward (definition) order."""

    name: str
    class_name: str
    n_params: int
    """Parameter elements of the module and everything below it, each once."""
    n_own_params: int
    """Parameter elements the module itself owns; 0 means it has no weight."""
    parent: int
    """Row of the parent in the same table; -1 for the root."""


ALIASES = "aliases"
"""Attribute of a quantity: its names in other systems, with commas between them."""


def read_aliases(attrs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in other systems from a quantity's attributes.

    Examples
    --------
    >>> read_aliases({"aliases": "RankMe, spectrum"})
    ('RankMe', 'spectrum')
    """
    return _separated(str(attrs.get(ALIASES, "")))


@lru_cache(maxsize=1024)  # each rule asks for them at each of its looks
def _separated(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(", ")))


USUAL = "usual"
"""Attribute of a quantity: what it is like where all is well, as a number in text."""

LIES_BETWEEN = "lies_between"
"""Attribute of a quantity: bounds of its values, as text."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One recorded quantity."""

    name: str
    units: str = "1"
    long_name: str = ""
    attrs: Mapping[str, str] = field(default_factory=dict)
    keep_bits: int | None = None
    """Bits of the mantissa that are stored; None for all."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Names of the quantity in other systems."""
        return read_aliases(self.attrs) if self.attrs else ()  # a loop may log thousands

    @property
    def usual(self) -> float | None:
        """Usual value in a healthy training; None if unknown or not a number."""
        # Attributes may come from any writer, so a damaged one is no error.
        try:
            return float(self.attrs[USUAL])
        except (KeyError, ValueError):
            return None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds of the values; None if unknown or not two numbers."""
        return _two_numbers(self.attrs.get(LIES_BETWEEN, ""))


@lru_cache(maxsize=256)  # asked of every quantity at each look
def _two_numbers(text: str) -> tuple[float, float] | None:
    try:
        low, high = map(float, text.split())
    except ValueError:
        return None
    return low, high


@dataclass(frozen=True, slots=True)
class Event:
    """An event at a step: attach, detach, resume, alert, parameter change."""

    step: int
    time_ms: int
    kind: str
    text: str
    detail: str = ""
    """Details for programs: JSON, empty for most kinds."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """A series in few points: finite ones in order, and where it was not finite."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    nonfinite: npt.NDArray[np.float64]
    """x of every NaN or infinite y, none left out."""


@dataclass(frozen=True, slots=True)
class ChunkGrid:
    """Sizes of the chunks of a quantity's rows and columns on disk."""

    rows: tuple[int, ...]
    """First row of each; row 0 is one."""
    width: int
    """Columns of each."""


class LevelView(Protocol):
    """One level of a stream's pyramid: its whole blocks of ``size`` rows that are on disk."""

    @property
    def size(self) -> int: ...
    @property
    def n_blocks(self) -> int: ...
    def has(self, quantity: str, module: str) -> bool:
        """Return whether the level has this series."""

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        """Step of the first row of blocks ``start:stop``."""

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> Mapping[str, Floats]:
        """``min``, ``max`` and ``mean`` over blocks ``start:stop``, (block, module) each.

        NaN does not count in the first two; the mean is finite where all that was measured is.
        """


class StreamView(Protocol):
    """Rows of one schedule: ``values(q)[row, module]`` at ``steps()[row]``."""

    @property
    def name(self) -> str: ...
    @property
    def modules(self) -> tuple[str, ...]: ...
    @property
    def variables(self) -> tuple[Variable, ...]: ...
    @property
    def levels(self) -> Mapping[int, LevelView]:
        """Levels of the pyramid on disk, by rows per block; empty in a short record."""

    @property
    def version(self) -> tuple[object, ...]:
        """Changes when values below ``n_rows`` have: when they were written over from elsewhere."""

    @property
    def n_rows(self) -> int:
        """Rows that can be read now, those not yet on disk included."""

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        """Return the steps of rows ``start:stop``, strictly increasing, int64 (row,)."""

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        """Wall time of rows ``start:stop`` in milliseconds since 1970, int64 (row,)."""

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        """Values of rows ``start:stop``, float32 (row, module); NaN where nothing was recorded."""

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        """Return the chunks of a quantity on disk; rows not on disk count as the last chunk."""


class VectorView(StreamView, Protocol):
    """Rows of vectors of one schedule: ``values(q)[row, module]`` is a vector along ``axis``."""

    @property
    def axis(self) -> Axis: ...


class ArrayView(StreamView, Protocol):
    """Arrays of one quantity at one module: ``values(q)[row, 0]`` is an array."""

    @property
    def cell(self) -> tuple[int, ...]:
        """Shape of each array."""


class Source(Protocol):
    """One run, growing or finished, for its readers."""

    @property
    def name(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def revision(self) -> int:
        """Number that grows whenever there is something new to read."""

    @property
    def finished(self) -> bool: ...
    @property
    def modules(self) -> tuple[ModuleRow, ...]: ...
    @property
    def streams(self) -> Mapping[str, StreamView]:
        """Streams of numbers, by name."""

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        """Streams of vectors, by path: ``"hist/every_1"``."""

    @property
    def elements(self) -> Mapping[str, StreamView]:
        """Vectors of every kind as streams of numbers, a column for each element."""

    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def data(self) -> xr.Dataset:
        """Dims (module, step), a variable per quantity; streams joined, NaN where unmeasured.

        Vectors have their axis as a third dimension; per-module vectors have dims (element, step).
        """

    @property
    def blobs(self) -> Mapping[str, Mapping[str, xr.DataArray]]:
        """Arrays of every module's own shape: quantity, then module; dims (step, ...)."""

    def recorded_name(self, quantity: str) -> str:
        """Return the recorded name of a quantity, which may be given by an alias."""
        ...

    def series(self, module: str, quantity: str, *, kept: bool = False) -> xr.DataArray:
        """Return a series over its own steps, without unmeasured rows; dims (step, ...).

        With ``kept``, only the retained rows of a ``keep(n)`` schedule.
        """

    def thinned(
        self,
        module: str,
        quantity: str,
        start: float | None = None,
        stop: float | None = None,
        n_points: int = 1400,
    ) -> Thinned:
        """Return at most ``n_points`` of a series of numbers, with its extremes; for pictures."""


def check_opened(*given: object) -> None:
    """Raise TypeError if one of these is no run, such as the location of a record."""
    for one in given:
        if isinstance(one, str | PathLike):
            place = str(one)
            raise TypeError(f"{place!r}: a run is expected, such as nbp.open_run({place!r})")
        if not hasattr(one, "streams"):
            raise TypeError(f"{one!r}: a run is expected, as nbp.watch and nbp.open_run return")
