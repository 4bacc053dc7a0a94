"""Results of a search for divergence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from notebook_probe.compare.deviation import told

__all__ = ["Parting", "Partings"]


@dataclass(frozen=True, slots=True)
class Parting:
    """Divergence of one module."""

    module: str
    step: int
    """Step of this run."""
    there: float
    """Smoothed distance, in decades; in spreads if `Partings.is_signed`."""
    now: float
    """The same at the last row that both have."""
    n_rows: int = 0
    """Number of consecutive rows from there on that are far apart."""
    n_wanted: int = 0
    """Number of consecutive rows that count as divergence; fewer for values that are not finite."""

    @property
    def is_certain(self) -> bool:
        """True if enough rows are far apart."""
        return self.n_rows >= self.n_wanted


@dataclass(frozen=True, slots=True)
class Partings(Sequence[Parting]):
    """Divergence of this run from others, the earliest first; a sequence of `Parting`.

    Modules that are far apart in too few rows so far are in `lately` instead.
    """

    this: str
    others: tuple[str, ...]
    """Names of the runs."""
    quantity: str
    by: str
    factor: float
    rows: int | None
    """None for the rows of ten steps, at least three."""
    found: tuple[Parting, ...]
    within: tuple[str, ...]
    """Modules that stay together."""
    missing: tuple[str, ...]
    """Modules at which it is measured in this run, or in others, but not in both."""
    is_signed: bool
    """True if distances are differences in spreads instead of ratios."""
    left_out: tuple[str, ...] = ()
    """Reasons why runs of a group are left out, a sentence each."""
    lately: tuple[Parting, ...] = ()
    """Modules that are far apart at their last rows, but not in enough rows yet."""

    @property
    def bound(self) -> str:
        """Bound of a small distance: ``×2``, ``2 spreads``, ``×2 or what 3 runs differ by``."""
        near = f"{self.factor:g} spreads" if self.is_signed else f"×{self.factor:g}"
        n = len(self.others)
        return near if n == 1 else f"{near} or what {n} runs differ by"

    @property
    def text(self) -> str:
        """Earliest divergence, or that there is none, in a sentence.

        Examples
        --------
        >>> parting(run, other, "update_ratio").text  # doctest: +SKIP
        'Differs from digits-cnn-8 at step 412: conv3 · update_ratio ×2.1'
        """
        whom = self.others[0] if len(self.others) == 1 else f"{len(self.others)} runs"
        if self.found:
            first = self.found[0]
            far = self.words(first.there)
            return (
                f"Differs from {whom} at step {first.step}: {first.module} · {self.quantity} {far}"
            )
        if self.lately:
            first = self.lately[0]
            far = self.words(first.now)
            return (
                f"Apart from {whom} since step {first.step}: {first.module} · {self.quantity} "
                f"{far}, in {first.n_rows} of {first.n_wanted} rows that are wanted"
            )
        if not self.within:
            return f"{self.quantity} is not recorded in both at any module"
        n = len(self.within)
        where = f"all {n} modules" if n > 1 else self.within[0]
        return f"They stay within {self.bound} at {where}"

    def words(self, far: float) -> str:
        """Return a distance of a `Parting` in words: ``×2.1``."""
        return told(far, is_signed=self.is_signed)

    def __repr__(self) -> str:
        lines = map(self._line, (*self.found, *self.lately))
        return "\n".join([self.text, *lines, *self.left_out])

    def _line(self, one: Parting) -> str:
        there, now = self.words(one.there), self.words(one.now)
        few = "" if one.is_certain else f", in {one.n_rows} of {one.n_wanted} rows"
        return f"{one.module}: from step {one.step}, {there}; now {now}{few}"

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
