"""Meanings of a record's names: each may have only one in its joined dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError
from notebook_probe.record.format.schema import check_axis
from notebook_probe.record.format.source import Variable

__all__ = ["Names"]


class Names:
    """Quantities that are numbers, quantities that are vectors, and coordinates."""

    def __init__(self) -> None:
        self._meanings: dict[str, str] = {}
        self._axes: dict[str, Axis] = {}
        self._folders: dict[str, str] = {}
        self._keep_bits: Mapping[str, int] = {}

    def round_off(self, keep_bits: Mapping[str, int]) -> None:
        """Store these numbers of mantissa bits of quantities from now on."""
        self._keep_bits = keep_bits

    def rounded(self, variable: Variable) -> Variable:
        """Return the quantity with its chosen precision."""
        n_bits = self._keep_bits.get(variable.name)
        return variable if n_bits is None else replace(variable, keep_bits=n_bits)

    def check(self, modules: Iterable[str], variables: Iterable[Variable]) -> None:
        """Raise QuantityError for names that are not text: every later flush would fail."""
        for module in modules:
            if not isinstance(module, str):
                raise QuantityError(f"module {module!r}; its path as text is expected")
        for one in variables:
            texts = (one.name, one.units, one.long_name, *one.attrs, *one.attrs.values())
            for text in texts:
                if not isinstance(text, str):
                    raise QuantityError(f"quantity {one.name!r}: {text!r}, where text is expected")

    def claim(self, quantity: str, meaning: str) -> None:
        """Note a quantity and what its values are.

        Raises
        ------
        QuantityError
            The name has another meaning.
        """
        self._note(quantity, meaning)

    def claim_coordinates(self, group: str, names: Iterable[str]) -> None:
        """Note the coordinates of ``group``; raises as `claim` does."""
        for name in names:
            self._note(name, f"a coordinate of {group!r}")

    def claim_folder(self, group: str) -> None:
        """Note a group; raises QuantityError when another differs from it by case only."""
        known = self._folders.setdefault(group.casefold(), group)
        if known != group:
            raise QuantityError(
                f"{group!r} differs from {known!r} by case only, and some file systems would mix "
                f"them"
            )

    def claim_axis(self, axis: Axis) -> None:
        """Note an axis and its coordinates.

        Raises
        ------
        QuantityError
            The group has another axis, or a name has another meaning.
        """
        check_axis(axis)
        if self._axes.setdefault(axis.group, axis) != axis:
            raise QuantityError(
                f"{axis.group!r} of this record are along another {self._axes[axis.group].name!r} "
                f"axis; record to a new folder"
            )
        self.claim_coordinates(axis.group, axis.coords)

    def _note(self, name: str, meaning: str) -> None:
        # Some file systems do not tell upper from lower case.
        known = self._meanings.setdefault(name.casefold(), meaning)
        if known != meaning:
            raise QuantityError(
                f"{name!r} is {known} in this record and cannot be {meaning} as well"
            )
