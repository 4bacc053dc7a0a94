"""A source in memory and the controls of a run that is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from notebook_probe.alerts import Rules
from notebook_probe.axis import Axis
from notebook_probe.quantities import own_name, quantities
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import (
    LIES_BETWEEN,
    USUAL,
    ChunkGrid,
    Event,
    Floats,
    LevelView,
    ModuleRow,
    Steps,
    Variable,
)
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.xarray_views import Snapshot, XarrayViews
from notebook_probe.run.attach.requests import Fitting, Request, Ticket
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.health.status import (
    PresetInfo,
    ProbeStatus,
    QuantityInfo,
    State,
    StatusHead,
)
from notebook_probe.run.settings.setting import KnobInfo

START_MS = 1_790_000_000_000


def said_of(name: str) -> dict[str, str]:
    """What a quantity of the package says of its values, as a run records it."""
    if own_name(name) != name or name not in quantities:
        return {}
    one = quantities[name]
    usual = {} if one.usual is None else {USUAL: repr(one.usual)}
    between = {} if one.bounds is None else {LIES_BETWEEN: " ".join(map(repr, one.bounds))}
    return usual | between


class FakeStream:
    """Rows in lists; counts what is read of it."""

    def __init__(
        self,
        name: str,
        modules: Sequence[str],
        quantities: Sequence[str],
        ms_per_step: int = 100,
        logged: bool = False,
    ) -> None:
        self.name = name
        self.modules = tuple(modules)
        self.variables = tuple(
            Variable(name, "1", LOGGED_BY if logged else f"about {name}", said_of(name))
            for name in quantities
        )
        self._steps = np.empty(0, np.int64)
        self._values = {name: np.empty((0, len(modules)), np.float32) for name in quantities}
        self._ms_per_step = ms_per_step
        self.n_values_read = 0

    def append(self, steps: Sequence[int] | Steps, **values: Any) -> None:
        """Rows at ``steps``; a quantity that is not given was not measured."""
        self._steps = np.concatenate([self._steps, np.asarray(steps, np.int64)])
        for name, old in self._values.items():
            new = np.full((len(steps), len(self.modules)), np.nan, np.float32)
            if name in values:
                new[:] = values[name]
            self._values[name] = np.concatenate([old, new])

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return {}

    @property
    def version(self) -> tuple[object, ...]:
        return ()

    @property
    def n_rows(self) -> int:
        return len(self._steps)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._steps[start:stop].copy()

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        return START_MS + self._steps[start:stop] * self._ms_per_step

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        columns = [
            self.modules.index(name) for name in (self.modules if modules is None else modules)
        ]
        read = self._values[quantity][start:stop][:, columns]
        self.n_values_read += read.size
        return read

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return ChunkGrid((0,), 1)


class FakeVectors(FakeStream):
    """Rows of vectors; only their names are read."""

    axis = Axis("bin", {"bin": (0.0, 1.0)}, group="hist")


class FakeSource(XarrayViews):
    """A model of ``modules`` and the streams it is given."""

    def __init__(self, *streams: FakeStream, modules: Sequence[str] = ("a", "b", "c")) -> None:
        self.name = "fake"
        self.location = "nowhere"
        self.finished = False
        self.modules = (
            ModuleRow("(root)", "Net", 30, 0, -1),
            *(ModuleRow(name, "Linear", 10, 10, 0) for name in modules),
        )
        self.given = list(streams)
        self.given_vectors: list[FakeVectors] = []
        self.events: tuple[Event, ...] = ()

    @property
    def revision(self) -> int:
        return sum(stream.n_rows for stream in self.given) + len(self.events)

    def snapshot(self) -> Snapshot:
        names = [row.name for row in self.modules]
        return Snapshot(self.given, self.given_vectors, names, {}, Branches())


class FakeControls:
    """Notes what is asked; `apply` plays the training thread."""

    is_here = True

    def __init__(self) -> None:
        self.state: State = "training"
        self.step = 7
        self.scalars: dict[str, float] = {"loss": 0.5}
        self.requests: list[Request] = []
        self.tickets: list[Ticket] = []
        self.attached: list[ProbeStatus] = []
        self.boundary_callbacks: list[Callable[[], None]] = []
        self.n_following = 0
        self.news_callbacks: list[Callable[[], None]] = []
        self.errors: list[BaseException | None] = []
        self.background = False
        self.problem = ""
        self.budget = ""
        self.progress = ""
        self.pause_reason = self.traceback = ""
        self.how_far: dict[str, Any] = {}
        self.costs_us: dict[str, float | None] = {"grad_norm": 12.0}
        self.settable = [KnobInfo("lr", 0.01, 0.0, None, True, (0.01,))]
        self.breaks: list[BreakpointInfo] = []
        self.rules = Rules(lambda: self.rule_states)
        self.rule_states: dict[str, str] = {}
        self.n_asked_catalogue = self.n_asked_probes = self.n_asked_fitting = 0
        self.n_looks = 0

    def put(self, request: Request) -> Ticket:
        ticket = Ticket(request, queued_step=self.step)
        self.requests.append(request)
        self.tickets.append(ticket)
        return ticket

    def apply(self, step: int) -> None:
        for ticket in self.tickets:
            ticket.state, ticket.applied_step, ticket.text = "applied", step, "done"

    def status_head(self) -> StatusHead:
        return StatusHead(
            name="fake",
            location="nowhere",
            state=self.state,
            step=self.step,
            steps_per_second=80.0,
            cost_percent=2.0,
            n_probes=len(self.attached),
            dropped_rows=0,
            nbytes=1000,
            flushed_age_s=0.5,
            background=self.background,
            scalars=self.scalars,
            problem=self.problem,
            budget=self.budget,
            progress=self.progress,
            pause_reason=self.pause_reason,
            traceback=self.traceback,
            **self.how_far,
        )

    def probes(self) -> Sequence[ProbeStatus]:
        self.n_asked_probes += 1
        return self.attached

    def attachable(self) -> Sequence[QuantityInfo]:
        self.n_asked_catalogue += 1
        return [
            QuantityInfo(name, f"About {name}.", ("grad",), "1", cost_us=cost)
            for name, cost in self.costs_us.items()
        ]

    def preset_infos(self) -> Sequence[PresetInfo]:
        return [PresetInfo("gradients", "What gradients do.", 6.1), PresetInfo("own", "", None)]

    def fitting(self) -> Fitting:
        self.n_asked_fitting += 1
        kinds = {"(root)": 2, "a": 3, "b": 3, "c": 3}
        return Fitting(kinds, {name: ["", "a call", "", ""] for name in self.costs_us})

    def looked_at(self) -> None:
        self.n_looks += 1

    def knobs(self) -> Sequence[KnobInfo]:
        return self.settable

    def pending_looks(self) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
        return [], {}

    def breakpoint_infos(self) -> Sequence[BreakpointInfo]:
        return self.breaks

    def severe_rules(self) -> Sequence[str]:
        return ["nonfinite_loss", "loss_spike"]

    restores = ""
    parent = None

    def rule_names(self) -> Sequence[str]:
        return ["dead_units", *self.severe_rules()]

    def follow(self) -> Callable[[], None]:
        self.n_following += 1

        def leave() -> None:
            self.n_following -= 1

        return leave

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.boundary_callbacks.append(callback)
        return lambda: self.boundary_callbacks.remove(callback)

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.news_callbacks.append(callback)
        return lambda: self.news_callbacks.remove(callback)

    def settle(self, error: BaseException | None = None) -> None:
        self.errors.append(error)
