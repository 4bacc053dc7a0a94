"""Partners of a trainer: schedulers, and listeners to what only it knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["KnobOfTrainer", "Scheduler", "TrainerListener"]


class Scheduler(Protocol):
    """Scheduler of learning rates, as torch's."""

    def step(self) -> Any: ...


class KnobOfTrainer(NamedTuple):
    """Arguments of `Run.knob`."""

    name: str
    get: Callable[[], float]
    set: Callable[[Any], object]
    low: float | None
    high: float | None
    log: bool


class TrainerListener(Protocol):
    """Listener to what only the trainer knows. `Recording` passes it to a run."""

    def batch(self, **values: Any) -> None: ...
    def knob(self, knob: KnobOfTrainer) -> None: ...
