"""The extra axes of a quantity whose value is a vector or an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["ARRAYS", "IMAGE", "PER_CHANNEL", "Arrays", "Axis", "AxisLike", "Image", "PerChannel"]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A dimension and its coordinates.

    If the last coordinate is NaN, that element of a value is a *width*: the factor for the
    coordinates of this value, such as the width of its bins.

    Raises
    ------
    ValueError
        The coordinates differ in length, or none has the name of the dimension.

    Examples
    --------
    >>> axis = Axis("quantile", {"quantile": (0.05, 0.5, 0.95)}, group="quantiles")
    >>> axis.size
    3
    """

    name: str
    """Name of the dimension in the record."""
    coords: Mapping[str, tuple[float, ...]]
    """Coordinates along it; one is called like the dimension."""
    group: str
    """Name of the group of such quantities; one group, one axis."""

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.coords.items()}
        if self.name not in lengths or len(set(lengths.values())) > 1:
            raise ValueError(
                f"axis {self.name!r} with coordinates of lengths {lengths}; one called "
                f"{self.name!r} and equal lengths are needed"
            )

    @property
    def size(self) -> int:
        return len(self.coords[self.name])

    @property
    def has_width(self) -> bool:
        """True if the last element of a value is the width that its coordinates count in."""
        return math.isnan(self.coords[self.name][-1]) if self.size else False

    @property
    def without_width(self) -> Axis:
        """All but the last element."""
        return Axis(self.name, {name: at[:-1] for name, at in self.coords.items()}, self.group)

    @property
    def expected(self) -> str:
        """Description of a value, as text."""
        return f"{self.size} real numbers along {self.name!r}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a value can have this shape."""
        return shape == (self.size,)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Axis) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((self.name, self.group))  # cheap: it is the key of every row

    def _key(self) -> object:
        """Return a key for equality; NaN counts as equal to NaN."""
        coords = {
            name: tuple(None if math.isnan(value) else value for value in values)
            for name, values in self.coords.items()
        }
        return self.name, self.group, tuple(sorted(coords.items()))


class PerChannel:
    """Axis of vectors with one element per channel, or of another per-module length.

    They are recorded one module after the other, and read as ``run.series(module, quantity)`` with
    dims (step, index).
    """

    expected = "a vector of real numbers"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a value can have this shape."""
        return len(shape) == 1 and shape[0] > 0

    def __repr__(self) -> str:
        return "PER_CHANNEL"


PER_CHANNEL = PerChannel()


class Image:
    """The axes of images: rows and columns, and three or four colors if there are any.

    They are recorded as `Run.log_array` records arrays; of several calls in a step the last one's
    is kept. Each module has images of one size.
    """

    expected = "an image: (height, width), or (height, width, 3 or 4)"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a value can have this shape."""
        return min(shape, default=0) > 0 and (
            len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))
        )

    def stored(self, name: str, shape: tuple[int, ...]) -> str:
        """Return the recorded name of an array of this shape."""
        return name

    def __repr__(self) -> str:
        return "IMAGE"


IMAGE = Image()


class Arrays(Image):
    """Axes of arrays of any shape, which may differ between steps: a name for each shape."""

    expected = "an array with one element or more"

    def fits(self, shape: tuple[int, ...]) -> bool:
        return min(shape, default=0) > 0

    def stored(self, name: str, shape: tuple[int, ...]) -> str:
        """Return the name followed by the shape.

        Examples
        --------
        >>> ARRAYS.stored("look_output", (8, 16, 28, 28))
        'look_output_8x16x28x28'
        """
        return f"{name}_{'x'.join(map(str, shape))}"

    def __repr__(self) -> str:
        return "ARRAYS"


ARRAYS = Arrays()

AxisLike: TypeAlias = Axis | PerChannel | Image
"""Axis of a value that is not a number."""
