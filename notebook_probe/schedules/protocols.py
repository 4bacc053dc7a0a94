"""Interfaces of schedules, required and optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from notebook_probe.schedules.span import Span

__all__ = ["Bindable", "Composite", "Foreseen", "Restarted", "Schedule", "ScheduleLike"]


@runtime_checkable
class Schedule(Protocol):
    """Due or not, decided once per step; ``stream`` names the step axis of its rows."""

    def __call__(self, step: int) -> bool: ...

    @property
    def stream(self) -> str:
        """Name of the record's stream: a valid group name, equal for schedules that share rows."""
        ...


@runtime_checkable
class Foreseen(Schedule, Protocol):
    """A schedule that knows in advance when it will be due."""

    def next_due(self, step: int) -> int | None:
        """First due step from ``step`` on; None when there is none."""
        ...


@runtime_checkable
class Bindable(Protocol):
    """A schedule that needs facts about the run, or state: it is bound when armed.

    The bound schedule has the stream and the text of the original, and can be bound again when more
    is known; its state is kept.
    """

    def bound(self, span: Span) -> Schedule:
        """Return the schedule for a run."""
        ...


@runtime_checkable
class Composite(Protocol):
    """A schedule that is made of others."""

    @property
    def parts(self) -> tuple[Schedule, ...]: ...


@runtime_checkable
class Restarted(Protocol):
    """A bound schedule whose next due step depends on when the work was done."""

    def restart(self) -> None:
        """Note that the due work is done."""


ScheduleLike: TypeAlias = "Schedule | Callable[[int], bool] | str | int | None"
