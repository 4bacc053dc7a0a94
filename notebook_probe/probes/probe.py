"""A probe: one quantity at one place on one schedule, with the tally of what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from notebook_probe.quantities.base import Quantity
from notebook_probe.schedules import Schedule

__all__ = ["MAX_ERRORS", "Probe"]

MAX_ERRORS = 3
"""Failing steps in a row after which a probe is disabled."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Probe:
    """Written by the training thread alone; anyone may read it."""

    place: str
    """Path of a module, or of a parameter."""
    quantity: Quantity
    schedule: Schedule
    attached_step: int = 0
    was_due: bool = False
    n_values: int = 0
    last_step: int = -1
    n_errors: int = 0
    errors_in_a_row: int = 0
    error_step: int = -1
    error: str = ""
    disabled: bool = False
    seconds: float = 0.0
    """Time spent in its function, where it is called on its own."""
    stream: str = field(init=False)
    """Name of the record's stream its values lie on."""

    def __post_init__(self) -> None:
        self.stream = self.schedule.stream

    def key(self) -> tuple[str, str, Schedule]:
        return self.place, self.quantity.name, self.schedule

    def succeeded(self, step: int) -> None:
        self.n_values += 1
        self.last_step = step
        self.errors_in_a_row = 0

    def failed(self, error: Exception, step: int) -> None:
        """Count an error, once per step; after `MAX_ERRORS` in a row the probe measures no more."""
        if step == self.error_step:
            return
        self.error_step = step
        self.n_errors += 1
        self.errors_in_a_row += 1
        self.error = f"{type(error).__name__}: {error}"
        self.disabled = self.errors_in_a_row >= MAX_ERRORS
