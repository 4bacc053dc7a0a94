"""The state of a run as plain values: what `run.status()` returns and a panel shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias

from notebook_probe.run.health.status_text import describe_status

__all__ = [
    "AMBIGUOUS",
    "COMPILED",
    "COMPILED_NOTES",
    "NOT_INSIDE",
    "NO_VARIANT",
    "OLD_TORCH",
    "REFUSED",
    "ROOT_INSIDE",
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
    "run.on_compiled = 'inside' measures norms, moments and counts in its graphs, "
    "run.on_compiled = 'eager' runs the probed steps uncompiled"
)
"""The note of a probe that cannot fire as long as the model is called in compiled form."""

NOT_INSIDE = (
    "the model is compiled: its graphs hand out sums over outputs, inputs and their gradients, "
    "and this is none. run.on_compiled = 'eager' runs the probed steps uncompiled"
)
"""The note of a probe that no compiled graph can measure."""

OLD_TORCH = f"{COMPILED}; torch 2.13 or later measures norms, moments and counts inside"

NO_VARIANT = (
    "the model is compiled, and one of its functions has nearly as many graphs as "
    "torch._dynamo.config.recompile_limit allows, so that none is compiled for readings. "
    "run.on_compiled = 'eager' runs the probed steps uncompiled"
)

ROOT_INSIDE = (
    "the call of the model itself is compiled: in a function that calls it, or because it is a "
    "module of torch's own, such as nn.Sequential. run.on_compiled = 'eager' runs the probed steps "
    "uncompiled"
)

AMBIGUOUS = (
    "the model is compiled and was called with and without a backward in one step: a graph does "
    "not tell which call had it. run.on_compiled = 'eager' runs the probed steps uncompiled"
)

REFUSED = (
    "the model is compiled by a backend that refuses graphs with readings, so these were compiled "
    "without. run.on_compiled = 'eager' runs the probed steps uncompiled"
)

COMPILED_NOTES = frozenset(
    {COMPILED, NOT_INSIDE, OLD_TORCH, NO_VARIANT, ROOT_INSIDE, AMBIGUOUS, REFUSED}
)
"""Notes of probes that running the probed steps uncompiled would give values."""


@dataclass(frozen=True, slots=True)
class QuantityInfo:
    """An attachable quantity for the panel."""

    name: str
    summary: str
    needs: tuple[str, ...]
    """Needs in the user's words: input, output, weight, grad, update, or the call for it."""
    units: str
    value: ValueKind = "number"
    """Form of a value; only numbers are drawn as lines."""
    question: str = ""
    """Question that it answers, under which a panel lists it."""
    topic: str = ""
    """The question in few words."""
    is_of_model: bool = False
    """True if it is about the step as a whole, and attached only at the root."""
    usual: float | None = None
    """Usual value in a healthy training; None if that depends on the model."""
    cost_us: float | None = None
    """Median cost of one evaluation in this run, microseconds; None before it was measured."""
    formula: str = ""
    aliases: tuple[str, ...] = ()
    """Names in other systems."""
    reads_every_step: bool = False
    """True if it reads each step, and costs the same however rarely it is due."""


@dataclass(frozen=True, slots=True)
class PresetInfo:
    """A preset for the panel."""

    name: str
    about: str
    percent: float | None
    """Share of a training step, the median of the models it was measured on."""


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """Status of one probe: a quantity at one module on one schedule."""

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
    """Reason why it has no value, as text; empty if it fires."""
    waits: bool = False
    """True if it has no value because none was due yet."""
    cost_us: float = 0.0
    """Microseconds per step, averaged over the steps since probes last changed."""
    cost_percent: float = 0.0
    """Per cent of the time of these steps; all probes together make the mean cost."""


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
    """Time spent in probes, in calling them and in row keeping, per cent of step time, lately.

    With the time inside compiled graphs, which ``graphs_percent`` is.
    """
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
    """The writer's or the loop's error, as text."""
    progress: str = ""
    """Slow measurement in progress, as text; mostly empty."""
    total_s: float = 0.0
    """Seconds of all steps so far, and those spent in probes and row keeping."""
    total_cost_s: float = 0.0
    """Seconds of these that were spent in probes and row keeping."""
    n_measured: int = 0
    """Steps over which speed and cost are taken, the last ones."""
    budget_percent: float | None = None
    """Budget of watching, in per cent of step time, as in `Run.budget`."""
    budget: str = ""
    """Steps taken to keep the cost inside `Run.budget`, as text; empty without one."""
    epoch: int = -1
    """Epoch of the training loop, as set by `Run.expect`; -1 if unknown."""
    end_step: int = -1
    """The step at which training will end; -1 when it is not known."""
    seconds_left: float | None = None
    """Remaining seconds, at the speed of the last steps; None if unknown or not training."""
    pause_reason: str = ""
    """Reason of a breakpoint's pause, as text; empty without one."""
    within_step: bool = False
    """True while paused before an update, or by an exception.

    Requests then wait for the next step, except for controls and going back.
    """
    flight: str = ""
    """Contents of the flight recorder, as text; empty without one."""
    traceback: str = ""
    """Traceback of the exception that has ended the loop; empty without one."""
    going_to: int = -1
    """Step to which the loop goes back now; -1 if it does not."""
    until: int = -1
    """Step up to which a loop that has ended would train after a rewind; -1 for others."""
    device: str = ""
    """Device of the model, such as ``"cuda:0, NVIDIA H100"``; empty for a record or if unknown."""
    graphs_percent: float = 0.0
    """Part of ``cost_percent`` that is spent inside compiled graphs; 0 if none reads.

    No hook sees it: it is taken from how much longer the steps are in which something is due. NaN,
    and not part of ``cost_percent``, until some of both kinds can be compared.
    """
    unheard: bool = False
    """A training elsewhere has not answered for a while: ``state`` is the last that it had."""
    compiling: bool = False
    """Graphs that make readings are being compiled, inside a call of the model."""

    def with_way_back(self, going_to: int | None, until: int | None) -> StatusHead:
        """Return the state of a run whose loop goes back, or can although it has ended."""
        if going_to is not None:  # the run may be closed already, its branch has not begun
            return replace(self, state="training", going_to=going_to)
        return self if until is None else replace(self, until=until)


@dataclass(frozen=True, slots=True, repr=False)
class Status(StatusHead):
    """A run at one moment, with every probe; shown in words."""

    probes: tuple[ProbeStatus, ...] = ()
    """Every probe: when it last fired, why it did not, what it costs."""
    quantity_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes on disk of each quantity, the largest first."""
    rules_off: Mapping[str, str] = field(default_factory=dict)
    """Error of each alert rule that is off, as its condition raised one."""

    @classmethod
    def of(
        cls,
        head: StatusHead,
        probes: tuple[ProbeStatus, ...],
        quantity_bytes: Mapping[str, int],
        rules_off: Mapping[str, str],
    ) -> Status:
        """Return a status from its head, and the rest of the same moment."""
        # Fields are copied by name, so that a new one of the head is never forgotten here.
        known = {one.name: getattr(head, one.name) for one in fields(StatusHead)}
        return cls(**known, probes=probes, quantity_bytes=quantity_bytes, rules_off=rules_off)

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
