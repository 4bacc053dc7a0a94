"""Contents to save for a unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["DueContents", "Frequencies", "due"]


class Frequencies(Protocol):
    """Every so many units, or never."""

    @property
    def save_metrics_freq(self) -> int | None: ...
    @property
    def save_valid_freq(self) -> int | None: ...
    @property
    def save_filters_freq(self) -> int | None: ...
    @property
    def cache_filters_freq(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class DueContents:
    """Contents due at a unit.

    Attributes
    ----------
    record : bool
        Its numbers.
    permanent, recent : bool
        A checkpoint that stays; one that gives way in time.
    """

    record: bool
    permanent: bool = False
    recent: bool = False

    @property
    def checkpoint(self) -> bool:
        return self.permanent or self.recent


def due(frequencies: Frequencies, k: int) -> DueContents:
    """Return what is due after ``k`` > 0 updates: one record, however many frequencies meet.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> every = SimpleNamespace(
    ...     save_metrics_freq=5, save_valid_freq=None, save_filters_freq=12, cache_filters_freq=6
    ... )
    >>> due(every, 6), due(every, 12).recent, due(every, 7).record
    (DueContents(record=True, permanent=False, recent=True), False, False)
    """
    permanent = _meets(frequencies.save_filters_freq, k)
    recent = _meets(frequencies.cache_filters_freq, k)
    others = (frequencies.save_metrics_freq, frequencies.save_valid_freq)
    record = permanent or recent or any(_meets(every, k) for every in others)
    return DueContents(record, permanent, recent and not permanent)


def _meets(every: int | None, k: int) -> bool:
    return every is not None and k > 0 and k % every == 0
