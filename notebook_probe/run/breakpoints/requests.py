"""What a panel may request of breakpoints: frozen values, imported without torch."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.run.breakpoints.conditions import Condition

__all__ = ["Break", "BreakpointInfo", "EditBreak", "Unbreak"]


@dataclass(frozen=True, slots=True)
class Break:
    """Hold the training when this happens."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class EditBreak:
    """Arm or disarm a breakpoint, or give it another number; None leaves what is."""

    id: int
    armed: bool | None = None
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Unbreak:
    """Take a breakpoint away."""

    id: int


@dataclass(frozen=True, slots=True)
class BreakpointInfo:
    """One breakpoint at one moment, as a panel lists it."""

    id: int
    condition: Condition
    armed: bool
    holds: bool
    """It is what the training is held by now."""
    last_step: int
    """Where it held last; -1 if it never did."""
    n_met: int
    """How often it was met."""
    note: str = ""
    """What stands in its way, in words."""
