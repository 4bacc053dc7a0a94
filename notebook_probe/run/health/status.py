"""The state of a run as plain values: what `run.status()` returns and a panel shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from notebook_probe.run.health.status_text import describe_status

__all__ = [
    "COMPILED",
    "PresetInfo",
    "ProbeStatus",
    "QuantityInfo",
    "State",
    "Status",
    "StatusHead",
    "ValueKind",
]

State: TypeAlias = Literal["waiting", "training", "paused", "idle", "finished", "failed"]
"""waiting: no step yet; idle: no step for a while; finished: closed; failed: an error ended it."""


ValueKind: TypeAlias = Literal["number", "vector", "image"]

COMPILED = (
    "the model is compiled and its calls run no hooks; weights and gradients are recorded. "
    "run.on_compiled = 'eager' runs the probed steps uncompiled"
)
"""The note of a probe that cannot fire as long as the model is called in compiled form."""


@dataclass(frozen=True, slots=True)
class QuantityInfo:
    """One attachable quantity, as a panel lists it."""

    name: str
    summary: str
    needs: tuple[str, ...]
    """In the user's words: input, output, weight, grad, update, or the call that hands it over."""
    units: str
    value: ValueKind = "number"
    """What one value is; all but numbers are recorded, and not drawn as lines."""
    question: str = ""
    """That it answers, under which a panel lists it."""
    topic: str = ""
    """The question in few words."""
    is_of_model: bool = False
    """It is of the step as a whole, and attached at the root alone."""
    usual: float | None = None
    """What it is like where all is well; None where that depends on the model."""
    cost_us: float | None = None
    """Median cost of one evaluation in this run, microseconds; None before it was measured."""
    formula: str = ""
    aliases: tuple[str, ...] = ()
    """Its names in other systems."""
    reads_every_step: bool = False
    """It gathers at each step, and costs the same however rarely it is due."""


@dataclass(frozen=True, slots=True)
class PresetInfo:
    """What can be attached under one name, as a panel lists it."""

    name: str
    about: str
    percent: float | None
    """What it takes of a training step, the median of the models it was measured on."""


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """One probe: a quantity at one module on one schedule."""

    module: str
    quantity: str
    schedule: str
    attached_step: int
    n_values: int
    last_step: int
    """Step of the last value; -1 when it has not fired yet."""
    n_errors: int = 0
    error: str = ""
    disabled: bool = False
    note: str = ""
    """Why it has no value, in words; empty when it fires."""
    waits: bool = False
    """It has no value because none was due yet."""
    cost_us: float = 0.0
    """Microseconds per step, averaged over the steps since probes last changed."""
    cost_percent: float = 0.0
    """Per cent of the time of these steps; all probes together come to the mean cost."""


@dataclass(frozen=True, slots=True)
class StatusHead:
    """State, speed and cost of a run at one moment: made in microseconds, of no probe."""

    name: str
    location: str
    state: State
    step: int
    """The step being trained now: the number of completed updates."""
    steps_per_second: float
    cost_percent: float
    """Time spent in probes, in calling them and in row keeping, per cent of step time, lately."""
    n_probes: int
    dropped_rows: int
    nbytes: int
    """Size of the record on disk."""
    flushed_age_s: float
    """Seconds since the last successful flush; NaN before the first."""
    background: bool = False
    """Training runs in a background thread started by `train_in_background`."""
    scalars: dict[str, float] = field(default_factory=dict)
    """Last value of everything given to `run.log`."""
    problem: str = ""
    """The writer's or the loop's error, in words."""
    progress: str = ""
    """What is being measured now and takes a while, in words; mostly empty."""
    total_s: float = 0.0
    """Seconds of all steps so far, with what was spent in probes and row keeping."""
    total_cost_s: float = 0.0
    """Seconds of these that were spent in probes and row keeping."""
    n_measured: int = 0
    """Steps over which speed and cost are taken, the last ones."""
    budget_percent: float | None = None
    """What watching may cost, in per cent of step time, as `Run.budget` has it."""
    budget: str = ""
    """What is done to keep the cost inside `Run.budget`, in words; empty without one."""
    epoch: int = -1
    """That of the training loop, as it was told by `Run.expect`; -1 when it is not known."""
    end_step: int = -1
    """The step at which training will end; -1 when it is not known."""
    seconds_left: float | None = None
    """Until then, at the speed of the last steps; None when it is not known, or nothing trains."""
    held: str = ""
    """Why a breakpoint holds the training, in words; empty while none does."""
    amid: bool = False
    """It is held before an update, or by an exception: what is requested waits for the next step,
    but for controls and a way back."""
    flight: str = ""
    """What the flight recorder keeps in memory, in words; empty without one."""
    traceback: str = ""
    """Of the exception that has ended the loop; empty while there was none."""


@dataclass(frozen=True, slots=True, repr=False)
class Status(StatusHead):
    """A run at one moment, with every probe; shown in words."""

    probes: tuple[ProbeStatus, ...] = ()
    """Every probe: when it last fired, why it did not, what it costs."""
    quantity_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes on disk of each quantity, the largest first."""

    @classmethod
    def of(
        cls,
        head: StatusHead,
        probes: tuple[ProbeStatus, ...],
        quantity_bytes: Mapping[str, int],
    ) -> Status:
        """The head, and the probes and the record of the same moment."""
        known = {one.name: getattr(head, one.name) for one in fields(StatusHead)}
        return cls(**known, probes=probes, quantity_bytes=quantity_bytes)

    @property
    def head(self) -> StatusHead:
        """All that is of no probe."""
        return StatusHead(**{one.name: getattr(self, one.name) for one in fields(StatusHead)})

    @property
    def errors(self) -> tuple[ProbeStatus, ...]:
        """The probes that have failed."""
        return tuple(probe for probe in self.probes if probe.n_errors)

    @property
    def silent(self) -> tuple[ProbeStatus, ...]:
        """The probes that should fire and do not, each with its reason in ``note``."""
        return tuple(probe for probe in self.probes if probe.note and not probe.waits)

    def __repr__(self) -> str:
        return describe_status(self)
