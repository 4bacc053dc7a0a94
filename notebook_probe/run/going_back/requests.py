"""What a panel may request of a loop that can go back: frozen values, imported without torch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EvaluateAt", "GoBack"]


@dataclass(frozen=True, slots=True)
class GoBack:
    """Go back to the state after ``step`` updates, and train on from there as a branch.

    What was measured, and what holds the training, goes on as before.
    """

    step: int
    preset: str = ""
    """Measured beside it on ``schedule``; "" for nothing more."""
    schedule: str = "every(1)"
    until: int | None = None
    """The preset is measured before this step only; None for good."""
    rate: float | None = None
    """Learning rate from there on; None as it was."""
    hold_at: int | None = None
    """Hold the training before this step."""


@dataclass(frozen=True, slots=True)
class EvaluateAt:
    """Measure in the state after ``step`` updates, and train on as if nothing had been."""

    step: int
    preset: str = ""
    """What of it an evaluation can tell; "" means what is attached."""
