"""A probe: one quantity at one place on one schedule, with the tally of what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from notebook_probe.errors import InterferenceError
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.define.window import Window
from notebook_probe.quantities.reduce.features import Moment
from notebook_probe.schedules import Schedule

__all__ = ["MAX_ERRORS", "WAITING", "PhaseName", "Probe"]

WAITING = -1
"""The attached step of a probe that is wanted and not measured yet."""

PhaseName: TypeAlias = Literal["training", "eval"]

MAX_ERRORS = 3
"""Failing steps in a row after which a probe is disabled."""

MOST_WORDS = 2000
"""Characters that are kept of an error."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Probe:
    """Probe of a quantity at a place; written by the training thread alone, read by any."""

    place: str
    """Path of a module, or of a parameter."""
    quantity: Quantity
    schedule: Schedule
    phase: PhaseName = "training"
    per_call: bool = False
    """True if each call of a step has a separate value."""
    may_stretch: bool = False
    """True if its schedule is the default: a budget may make it due less often."""
    of_preset: bool = False
    """True if a preset attached it, not the user by name."""
    every: int = 1
    """Number of due steps of which one is measured, according to the budget."""
    turn: int = 0
    """Number of the measured one among these due steps: modules take turns."""
    attached_step: int = WAITING
    was_due: bool = False
    n_values: int = 0
    last_step: int = -1
    n_errors: int = 0
    errors_in_a_row: int = 0
    values_failed: int = 0
    """Due steps in a row in which a window was not made into a value."""
    error_step: int = -1
    error: str = ""
    disabled: bool = False
    is_spoiled: bool = False
    """True if its windows have included more or fewer steps than their next value is of."""
    begins_late: bool = False
    """Steps that its windows look back at were measured by an earlier run."""
    gap: str = ""
    """Reason why an existing tensor could not be read."""
    stream: str = field(init=False)
    """Name of the record's stream for its values."""
    variable: str = field(init=False)
    """Name of the record's variable."""
    armed: Schedule = field(init=False)
    """Schedule bound to what is known of the run."""

    accumulations: bool = field(init=False)
    """True if the count recorded with it is of accumulations, not calls."""
    count: str = field(init=False)
    """Name of the variable with the count."""
    moments: frozenset[Moment] = field(init=False)
    """Moments at which its features are read."""
    windows: dict[object, Window] = field(init=False, default_factory=dict)
    """Windows of a quantity of several steps, by the slot of the parameter if of one."""

    def __post_init__(self) -> None:
        self.moments = frozenset(self.quantity.moments)
        self.armed = self.schedule
        self.stream = self.called(self.schedule.stream)
        self.variable = self.called(self.quantity.name)
        self.accumulations = "accumulated" in self.moments
        self.count = "accumulations" if self.accumulations else self.called("calls")

    def called(self, name: str) -> str:
        """Return a name in the record, which tells evaluations from the training."""
        return name if self.phase == "training" else f"{self.phase}_{name}"

    @property
    def can_stretch(self) -> bool:
        """True if stretching is allowed and helps: what reads every step costs the same anyway."""
        return self.may_stretch and self.quantity.samples != "every"

    def key(self) -> tuple[str, str, Schedule, bool]:
        return self.place, self.variable, self.schedule, self.per_call

    def window_of(self, slot: object) -> Window:
        """Return the window of a parameter, or with None that of the place; begun when new."""
        if slot not in self.windows:
            window: Window = self.quantity()
            window.reset()
            if self.begins_late and (begin_late := getattr(window, "begin_late", None)):
                begin_late()
            self.windows[slot] = window
        return self.windows[slot]

    def succeeded(self, step: int) -> None:
        self.n_values += 1
        self.last_step = step
        self.values_failed = 0
        if step != self.error_step:  # as `went_well`, for thousands of values
            self.errors_in_a_row = 0

    def went_well(self, step: int) -> None:
        """Note that nothing failed in a step."""
        if step != self.error_step:
            self.errors_in_a_row = 0

    def failed(self, error: Exception, step: int) -> None:
        """Count an error, once per step; after `MAX_ERRORS` in a row the probe measures no more."""
        if step == self.error_step:
            return
        self.error_step = step
        self.n_errors += 1
        self.errors_in_a_row += 1
        self.disabled = self.errors_in_a_row >= MAX_ERRORS or isinstance(error, InterferenceError)
        self.error = f"{type(error).__name__}: {_words(error)}"

    def value_failed(self) -> None:
        """Count a value that was not made, however well the steps before it went."""
        self.values_failed += 1
        self.disabled |= self.values_failed >= MAX_ERRORS


def _words(error: Exception) -> str:
    try:
        return str(error)[:MOST_WORDS]
    except Exception as another:  # an error class of other code, whose text cannot be made
        return f"its text cannot be read: {type(another).__name__}"
