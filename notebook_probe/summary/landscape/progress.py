"""Progress and remaining time of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from notebook_probe.train.loop.progress import is_wanted

__all__ = ["LandscapeProgress", "ProgressLike", "Tell", "ignore", "reporting"]


@dataclass(frozen=True, slots=True)
class LandscapeProgress:
    """Number of losses done, in total, and the seconds so far.

    Examples
    --------
    >>> print(LandscapeProgress("result landscape", 1, 1601, 0.05))
    result landscape: 1 of 1601 losses, about 80 s to go
    """

    what: str
    done: int
    total: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        """Estimated seconds left."""
        return self.seconds / self.done * (self.total - self.done)

    def __str__(self) -> str:
        left = "done" if self.done == self.total else f"about {_time(self.seconds_left)} to go"
        return f"{self.what}: {self.done} of {self.total} losses, {left}"


Tell: TypeAlias = Callable[[LandscapeProgress], Any]
ProgressLike: TypeAlias = "bool | Tell | None"


def ignore(progress: LandscapeProgress) -> None:
    """Ignore a progress report."""


@contextmanager
def reporting(wanted: ProgressLike) -> Iterator[Tell]:
    """Yield the function that reports progress.

    Parameters
    ----------
    wanted : bool, callable or None
        A callable itself. True prints the estimated time, and shows a bar of tqdm if there is one;
        None shows the bar only where it is visible; False is silent.
    """
    if callable(wanted):
        yield wanted
        return
    bars: list[Any] = []

    def show(progress: LandscapeProgress) -> None:
        if progress.done == 1:
            print(progress)
            if wanted or is_wanted(None):
                bars.extend(_bar(progress))
        for bar in bars:
            # The bar is updated by what is missing, as it may have been made late.
            bar.update(progress.done - bar.n)

    try:
        yield ignore if wanted is False else show
    finally:
        for bar in bars:
            bar.close()


def _bar(progress: LandscapeProgress) -> list[Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return []
    return [tqdm(total=progress.total, desc=progress.what, unit="loss")]


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
