"""What is told of where runs part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from notebook_probe.compare.deviation import told

__all__ = ["Parting", "Partings"]


@dataclass(frozen=True, slots=True)
class Parting:
    """Where one module parts."""

    module: str
    step: int
    """Of this run."""
    there: float
    """How far apart, smoothed, in decades; in spreads where `Partings.is_signed`."""
    now: float
    """The same at the last row that both have."""


@dataclass(frozen=True, slots=True)
class Partings(Sequence[Parting]):
    """Where this run parts from others, the earliest first; a sequence of `Parting`."""

    this: str
    others: tuple[str, ...]
    """Names of the runs."""
    quantity: str
    by: str
    factor: float
    rows: int
    found: tuple[Parting, ...]
    within: tuple[str, ...]
    """Modules that stay together."""
    missing: tuple[str, ...]
    """Modules at which it is measured in this run, or in others, but not in both."""
    is_signed: bool
    """Differences in units of the spread are told instead of ratios."""
    left_out: tuple[str, ...] = ()
    """Why others of a group are not compared with, a sentence each."""

    @property
    def bound(self) -> str:
        """Within what is near, in words: ``×2``, ``2 spreads``, ``×2 or what 3 runs differ by``."""
        near = f"{self.factor:g} spreads" if self.is_signed else f"×{self.factor:g}"
        n = len(self.others)
        return near if n == 1 else f"{near} or what {n} runs differ by"

    @property
    def text(self) -> str:
        """The first of them, or that there is none, in a sentence.

        Examples
        --------
        >>> parting(run, other, "update_ratio").text  # doctest: +SKIP
        'Parts from digits-cnn-8 at step 412: conv3 · update_ratio ×2.1'
        """
        whom = self.others[0] if len(self.others) == 1 else f"{len(self.others)} runs"
        if self.found:
            first = self.found[0]
            far = self.words(first.there)
            return f"Parts from {whom} at step {first.step}: {first.module} · {self.quantity} {far}"
        if not self.within:
            return f"{self.quantity} is not recorded in both at any module"
        n = len(self.within)
        where = f"all {n} modules" if n > 1 else self.within[0]
        return f"They stay within {self.bound} at {where}"

    def words(self, far: float) -> str:
        """A number of a `Parting` as it is told: ``×2.1``."""
        return told(far, is_signed=self.is_signed)

    def __repr__(self) -> str:
        return "\n".join([self.text, *map(self._line, self.found), *self.left_out])

    def _line(self, one: Parting) -> str:
        there, now = self.words(one.there), self.words(one.now)
        return f"{one.module}: from step {one.step}, {there}; now {now}"

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Parting]:
        return iter(self.found)

    @overload
    def __getitem__(self, place: int) -> Parting: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Parting]: ...
    def __getitem__(self, place: int | slice) -> Parting | Sequence[Parting]:
        return self.found[place]
