"""Requests of a panel or another thread, applied by the training thread between steps.

A request is a frozen value. Putting it returns a `Ticket` at once, which later has the result.
Nothing here touches a model, so this file is imported without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from notebook_probe.run.breakpoints.requests import AddBreakpoint, EditBreakpoint, RemoveBreakpoint
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack, SaveCheckpoint

__all__ = [
    "CALL_KIND",
    "PARAMETER_KIND",
    "Act",
    "Attach",
    "AttachPreset",
    "Budgeted",
    "BuildGraph",
    "CompareWith",
    "Compiled",
    "Control",
    "Detach",
    "EditRule",
    "ExamineModel",
    "Fitting",
    "LookAt",
    "Release",
    "Request",
    "Reschedule",
    "Scale",
    "Set",
    "Ticket",
]


@dataclass(frozen=True, slots=True)
class Attach:
    """Measure ``quantity`` at every module of ``where`` (paths) whenever ``schedule`` is due.

    None means its default places: all layers, attention modules or the model, by its kind.
    """

    where: tuple[str, ...] | None
    quantity: str
    schedule: str = "every(1)"


@dataclass(frozen=True, slots=True)
class Detach:
    """Stop measuring ``quantity`` (every quantity when empty) at the modules of ``where``."""

    where: tuple[str, ...]
    quantity: str = ""


@dataclass(frozen=True, slots=True)
class AttachPreset:
    """Attach a preset, except for what is attached already."""

    name: str


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Measure ``quantity`` at the modules of ``where`` on another schedule.

    None means wherever it is attached, and at modules that come later.
    """

    where: tuple[str, ...] | None
    quantity: str
    schedule: str


@dataclass(frozen=True, slots=True)
class Control:
    """Pause, resume, take one step, or stop the training loop."""

    action: Literal["pause", "resume", "step", "stop"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Choose how a compiled model runs steps in which its calls are probed."""

    steps: Literal["inside", "eager", "skip"]


@dataclass(frozen=True, slots=True)
class Budgeted:
    """Budget of watching, in per cent of step time; None measures every due step."""

    percent: float | None


@dataclass(frozen=True, slots=True)
class Set:
    """Set an option of the optimizers, such as ``"lr"``, or a knob of the user's own."""

    name: str
    value: float
    group: int | None = None
    """Parameter group, counted through all optimizers of the model; None means all."""
    hold: bool = False
    """True to keep the value, whatever a schedule says, until it is set again or released."""


@dataclass(frozen=True, slots=True)
class LookAt:
    """Keep the tensors of a module in the next step."""

    module: str
    samples: int = 8
    """Number of samples of tensors with a batch axis."""
    soon: bool = False
    """Write them at once: a user waits for the picture."""


@dataclass(frozen=True, slots=True)
class BuildGraph:
    """Record the graph of the model, called with the batch that is kept, or as in the next step."""


@dataclass(frozen=True, slots=True)
class ExamineModel:
    """Check the model with the batch that is kept, or with the inputs of the next step."""


@dataclass(frozen=True, slots=True)
class EditRule:
    """Give an alert rule other numbers, thresholds among them, for the rows to come."""

    rule: str
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CompareWith:
    """Alert once this run differs from other runs, its references; from none if there is none."""

    runs: tuple[str, ...]
    """Locations of their records."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Multiply a setting by one factor, in every group by that group's value."""

    name: str
    factor: float
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Leave an option of the optimizers to its schedule again."""

    name: str
    group: int | None = None


Request: TypeAlias = (
    Attach
    | AttachPreset
    | Detach
    | Reschedule
    | Control
    | Compiled
    | Budgeted
    | Set
    | LookAt
    | BuildGraph
    | ExamineModel
    | CompareWith
    | EditRule
    | AddBreakpoint
    | EditBreakpoint
    | RemoveBreakpoint
    | Scale
    | Release
    | GoBack
    | EvaluateAt
    | SaveCheckpoint
)

Act: TypeAlias = Callable[[Any, int], str]
"""Function that applies a request from a step on; returns what was done, as text."""


@dataclass(slots=True)
class Ticket:
    """Result of a request; written only by the training thread, readable from any."""

    request: Request
    queued_step: int
    state: Literal["queued", "applied", "refused"] = "queued"
    applied_step: int = -1
    text: str = ""
    """Result in words: the number of attached probes, or the reason for a refusal."""


PARAMETER_KIND, CALL_KIND = 0, 1
"""Kinds of places that are no modules."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Fit of quantities and places; all places of one kind fit the same quantities."""

    kinds: Mapping[str, int]
    """Module to its kind."""
    misfits: Mapping[str, Sequence[str]]
    """Quantity to, for each kind, why it cannot be measured there; "" where it can."""
