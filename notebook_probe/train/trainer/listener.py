"""Whom a trainer works with: who sets its rates, and who is told what only it knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["KnobOfTrainer", "Scheduler", "TrainerListener"]


class Scheduler(Protocol):
    """What sets learning rates: torch's schedulers."""

    def step(self) -> Any: ...


class TrainerListener(Protocol):
    """Who is told what only the trainer knows: a watched run."""

    def batch(self, **values: Any) -> None: ...
    def knob(
        self,
        name: str,
        get: Callable[[], float],
        set: Callable[[Any], object],
        low: float | None,
        high: float | None,
        log: bool,
    ) -> None: ...


class KnobOfTrainer(NamedTuple):
    """What `Run.knob` takes."""

    name: str
    get: Callable[[], float]
    set: Callable[[Any], object]
    low: float | None
    high: float | None
    log: bool
