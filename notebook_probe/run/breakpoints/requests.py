"""Requests of a panel about breakpoints: frozen values, imported without torch."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.run.breakpoints.conditions import PauseCondition

__all__ = ["AddBreakpoint", "BreakpointInfo", "EditBreakpoint", "RemoveBreakpoint"]


@dataclass(frozen=True, slots=True)
class AddBreakpoint:
    """Add a breakpoint."""

    condition: PauseCondition


@dataclass(frozen=True, slots=True)
class EditBreakpoint:
    """Arm or disarm a breakpoint, or change its number; None changes nothing."""

    id: int
    armed: bool | None = None
    number: float | None = None


@dataclass(frozen=True, slots=True)
class RemoveBreakpoint:
    """Take a breakpoint away."""

    id: int


@dataclass(frozen=True, slots=True)
class BreakpointInfo:
    """State of a breakpoint for the panel."""

    id: int
    condition: PauseCondition
    armed: bool
    pauses: bool
    """True if it pauses training now."""
    last_step: int
    """Step of the last pause; -1 if there was none."""
    n_met: int
    """Number of times it was met."""
    note: str = ""
    """Obstacle, as text."""
