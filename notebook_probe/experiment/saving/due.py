"""Contents to save for a unit."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.experiment.params.sections import SaveParams

__all__ = ["DueContents", "due"]


@dataclass(frozen=True, slots=True)
class DueContents:
    """Contents due at a unit.

    Attributes
    ----------
    record : bool
        If True, the unit's numbers are due.
    permanent, recent : bool
        A checkpoint that stays; one that gives way in time.
    """

    record: bool
    permanent: bool = False
    recent: bool = False

    @property
    def checkpoint(self) -> bool:
        return self.permanent or self.recent


def due(params: SaveParams, k: int) -> DueContents:
    """Return what is due after ``k`` > 0 updates: one record, however many frequencies meet.

    Examples
    --------
    >>> every = SaveParams(
    ...     exp_id="first", save_metrics_freq=5, save_valid_freq=None, save_filters_freq=12,
    ...     cache_filters_freq=6,
    ... )
    >>> due(every, 6), due(every, 12).recent, due(every, 7).record
    (DueContents(record=True, permanent=False, recent=True), False, False)
    """
    permanent = _meets(params.save_filters_freq, k)
    recent = _meets(params.cache_filters_freq, k)
    others = (params.save_metrics_freq, params.save_valid_freq)
    record = permanent or recent or any(_meets(every, k) for every in others)
    return DueContents(record, permanent, recent and not permanent)


def _meets(every: int | None, k: int) -> bool:
    return every is not None and k > 0 and k % every == 0
