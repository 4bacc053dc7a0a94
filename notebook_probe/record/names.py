"""What each name of a record stands for: in its joined dataset it can stand for one thing only."""

from __future__ import annotations

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError
from notebook_probe.record.schema import check_axis

__all__ = ["Names"]


class Names:
    """Quantities that are numbers, quantities that are vectors, and coordinates."""

    def __init__(self) -> None:
        self._meanings: dict[str, str] = {}
        self._axes: dict[str, Axis] = {}

    def claim(self, quantity: str, axis: Axis | None) -> None:
        """Note a quantity.

        Raises
        ------
        QuantityError
            When its name stands for something else.
        """
        self._note(quantity, "a number" if axis is None else f"a vector along {axis.name!r}")

    def claim_axis(self, axis: Axis) -> None:
        """Note an axis and its coordinates.

        Raises
        ------
        QuantityError
            When its group has another axis, or a name stands for something else.
        """
        check_axis(axis)
        if self._axes.setdefault(axis.group, axis) != axis:
            raise QuantityError(
                f"{axis.group!r} of this record are along another {self._axes[axis.group].name!r} "
                f"axis; record to a new folder"
            )
        for name in axis.coords:
            self._note(name, f"a coordinate of {axis.group!r}")

    def _note(self, name: str, meaning: str) -> None:
        # Some file systems do not tell upper from lower case.
        known = self._meanings.setdefault(name.casefold(), meaning)
        if known != meaning:
            raise QuantityError(
                f"{name!r} is {known} in this record and cannot be {meaning} as well"
            )
