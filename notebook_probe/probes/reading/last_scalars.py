"""The last value of everything that was logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from notebook_probe.quantities.reduce.stat import Number

__all__ = ["LastScalars"]


class LastScalars(Mapping[str, Number]):
    """Values by name; adding one more step costs nothing while the names are the same."""

    def __init__(self) -> None:
        self._newest: Mapping[str, Number] = {}
        self._older: dict[str, Number] = {}

    def take(self, scalars: Mapping[str, Number]) -> None:
        """Add the values of a step, which do not change any more."""
        if [*scalars] != [*self._newest]:
            self._older = {**self._older, **self._newest}
        self._newest = scalars

    def __getitem__(self, name: str) -> Number:
        newest = self._newest
        return newest[name] if name in newest else self._older[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._older, **self._newest})

    def __len__(self) -> int:
        return len({**self._older, **self._newest})
