"""Breakpoint handle, returned by `Run.pause_when`."""

from __future__ import annotations

from typing import Protocol

from notebook_probe.run.breakpoints.conditions import PauseCondition
from notebook_probe.run.breakpoints.requests import BreakpointInfo

__all__ = ["Breakpoint"]


class _List(Protocol):
    """List of breakpoints that a handle refers to.

    `Breakpoints`, which imports this module, is one.
    """

    def info(self, id: int) -> BreakpointInfo | None: ...
    def edit(self, id: int, armed: bool | None, number: float | None) -> str: ...
    def remove(self, id: int) -> str: ...


class Breakpoint:
    """A condition that pauses training; armed until it is disarmed or removed, from any thread.

    Examples
    --------
    >>> high = run.pause_when("conv3", "grad_norm", "> 10")  # doctest: +SKIP
    >>> high.number = 20  # doctest: +SKIP
    >>> high.armed = False  # doctest: +SKIP
    >>> high.remove()  # doctest: +SKIP
    """

    def __init__(self, id: int, condition: PauseCondition, of: _List) -> None:
        self.id, self._condition, self._list = id, condition, of

    @property
    def condition(self) -> PauseCondition:
        """Present condition; for a removed breakpoint, its last one."""
        known = self._list.info(self.id)
        if known is not None:
            # Kept, so that a removed breakpoint can still be described.
            self._condition = known.condition
        return self._condition

    @property
    def armed(self) -> bool:
        """True if it can pause training; False once removed."""
        known = self._list.info(self.id)
        return known is not None and known.armed

    @armed.setter
    def armed(self, armed: bool) -> None:
        self._list.edit(self.id, bool(armed), None)

    @property
    def number(self) -> float | None:
        """The step or the threshold of its condition; None where there is none."""
        return self.condition.number

    @number.setter
    def number(self, number: float) -> None:
        self._list.edit(self.id, None, number)

    @property
    def last_step(self) -> int:
        """Step of the last pause; -1 if there was none."""
        known = self._list.info(self.id)
        return -1 if known is None else known.last_step

    @property
    def note(self) -> str:
        """Obstacle, as text; empty if there is none."""
        known = self._list.info(self.id)
        return "removed" if known is None else known.note

    def remove(self) -> None:
        """Take it away; twice is fine."""
        if self._list.info(self.id) is not None:
            self._list.remove(self.id)

    def __repr__(self) -> str:
        known = self._list.info(self.id)
        if known is None:
            return f"<Breakpoint {self._condition.text}: removed>"
        standing = ["armed" if known.armed else "off"]
        if known.last_step >= 0:
            standing.append(f"paused at step {known.last_step}")
        if known.note:
            standing.append(known.note)
        return f"<Breakpoint {known.condition.text}: {', '.join(standing)}>"
