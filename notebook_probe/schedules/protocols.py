"""What a schedule is, and what else one may be able to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from notebook_probe.schedules.span import Span

__all__ = ["Bindable", "Composite", "Foreseen", "Restarted", "Schedule", "ScheduleLike"]


@runtime_checkable
class Schedule(Protocol):
    """Due or not, decided once per step; ``stream`` names the step axis its rows lie on."""

    def __call__(self, step: int) -> bool: ...

    @property
    def stream(self) -> str:
        """Name of the record's stream: a valid group name, equal for schedules that share rows."""
        ...


@runtime_checkable
class Foreseen(Schedule, Protocol):
    """A schedule that can say when it will be due without being asked step by step."""

    def next_due(self, step: int) -> int | None:
        """First due step from ``step`` on; None when there is none."""
        ...


@runtime_checkable
class Bindable(Protocol):
    """A schedule that needs constants of the run, or a state of its own: it is bound when armed.

    What is bound has the stream and the text of what it was made of, and can be bound anew when
    more is known; a state goes on meanwhile.
    """

    def bound(self, span: Span) -> Schedule:
        """What it comes to in a run."""
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
        """The work for which it was due is done."""


ScheduleLike: TypeAlias = "Schedule | Callable[[int], bool] | str | int | None"
