"""Requests for a loop that can go back: frozen values, imported without torch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EvaluateAt", "GoBack", "SaveCheckpoint"]


@dataclass(frozen=True, slots=True)
class GoBack:
    """Go back to the state after ``step`` updates, and train on from there as a branch.

    Measurements and breakpoints continue unchanged.
    """

    step: int
    preset: str = ""
    """Additional preset, measured on ``schedule``; "" for none."""
    schedule: str = "every(1)"
    until: int | None = None
    """Step before which the preset is measured; None for no end."""
    rate: float | None = None
    """Learning rate from there on; None keeps it."""
    pause_at: int | None = None
    """Step before which to pause."""


@dataclass(frozen=True, slots=True)
class EvaluateAt:
    """Measure in the state after ``step`` updates, and train on as if nothing had been."""

    step: int
    preset: str = ""
    """Preset to evaluate, without quantities that cannot be evaluated; "" for the attached
    quantities.
    """


@dataclass(frozen=True, slots=True)
class SaveCheckpoint:
    """Save the state between two steps, permanently."""
