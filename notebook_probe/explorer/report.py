"""What a panel tells its views about the run, apart from pictures: the model and the status."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from notebook_probe.explorer.opened import Opened
from notebook_probe.explorer.wire import (
    VERSION,
    ModelMessage,
    ProblemRow,
    QuantityRow,
    StatusMessage,
    TicketRow,
)
from notebook_probe.record.source import Source
from notebook_probe.run.requests import Controls
from notebook_probe.run.status import QuantityInfo, Status

__all__ = ["Report", "reasons"]

N_RECENT = 90
EXPECTING = ("waiting", "training", "paused")
SILENCE_S = 1.0
CONTROLS = ("pause", "resume", "step", "stop", "attach", "detach")

Scalar: TypeAlias = tuple[str, float | None, list[float | None]]


class Report:
    """Asks the run how it is and says what is new."""

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source, self._controls = source, controls
        self._opened = Opened(source)
        self._recent: dict[str, deque[float | None]] = {}
        self._scalar_step = -1
        self._model_key: object = None
        self._sent: StatusMessage | None = None
        self._sent_s = 0.0

    def status(self) -> Status:
        """How the run is now."""
        return self._opened.status() if self._controls is None else self._controls.status()

    def forget(self) -> None:
        """A view has come that knows nothing: the next messages are complete."""
        self._model_key = None
        self._sent = None

    def model(self) -> ModelMessage | None:
        """The module table and the quantities; None when a view has them already."""
        catalogue = self._catalogue()
        modules = self._source.modules
        key = (len(modules), [(row.name, row.cost_us is None) for row in catalogue])
        if key == self._model_key:
            return None
        self._model_key = key
        return {
            "v": VERSION,
            "type": "model",
            "name": self._source.name,
            "location": self._source.location,
            "live": self._controls is not None,
            "modules": [
                (row.name, row.class_name, row.n_params, row.n_own_params, row.parent)
                for row in modules
            ],
            "quantities": [_quantity_row(row) for row in catalogue],
        }

    def message(
        self,
        status: Status,
        route: str,
        recorded: dict[str, list[str]],
        tickets: list[TicketRow],
        problems: list[ProblemRow],
    ) -> StatusMessage | None:
        """The status; None when a view knows it and has been told so just now."""
        probes = self._controls.probes() if self._controls is not None else ()
        message: StatusMessage = {
            "v": VERSION,
            "type": "status",
            "state": status.state,
            "step": status.step,
            "rate": _finite(status.steps_per_second),
            "cost_percent": _finite(status.cost_percent),
            "route": route,
            "attached": [(probe.module, probe.quantity, probe.schedule) for probe in probes],
            "recorded": recorded,
            "notes": {probe.module: probe.note for probe in probes if probe.note},
            "problems": [*_problems(status), *problems],
            "tickets": tickets,
            "can": reasons(status, self._controls is not None),
            "record": status.location,
            "nbytes": status.nbytes,
            "flushed_age_s": _finite(status.flushed_age_s),
            "dropped_rows": status.dropped_rows,
        }
        scalar = self._scalar(status)
        if scalar is not None:
            message["scalar"] = scalar
        return self._news(message)

    def _news(self, message: StatusMessage) -> StatusMessage | None:
        """What a view does not know: long parts only where they changed."""
        before = self._sent
        if before is not None:
            aged: StatusMessage = {**message, "flushed_age_s": before["flushed_age_s"]}
            if aged == before and not self._is_awaited(message):
                return None
        self._sent, self._sent_s = message, time.monotonic()
        news = message.copy()
        if before is not None:
            if message["attached"] == before["attached"]:
                del news["attached"]
            if message["recorded"] == before["recorded"]:
                del news["recorded"]
            if message["notes"] == before["notes"]:
                del news["notes"]
        return news

    def _is_awaited(self, message: StatusMessage) -> bool:
        """A view of a live run takes a kernel that is silent for long to be busy or gone."""
        live = self._controls is not None and message["state"] in EXPECTING
        return live and time.monotonic() - self._sent_s > SILENCE_S

    def _scalar(self, status: Status) -> Scalar | None:
        """The first scalar the user logs, with what it has been at the last refreshes."""
        if not status.scalars:
            return None
        name, value = next(iter(status.scalars.items()))
        recent = self._recent.setdefault(name, deque(maxlen=N_RECENT))
        if status.step != self._scalar_step:
            self._scalar_step = status.step
            recent.append(_finite(value))
        return name, _finite(value), list(recent)

    def _catalogue(self) -> Sequence[QuantityInfo]:
        if self._controls is not None:
            return self._controls.catalogue()
        streams = self._source.streams.values()
        found = {variable.name: variable for stream in streams for variable in stream.variables}
        return [
            QuantityInfo(name, variable.long_name, (), variable.units)
            for name, variable in found.items()
        ]


def reasons(status: Status, live: bool) -> dict[str, str]:
    """Control to the reason why it cannot act now, empty where it can."""
    ended = status.state == "finished"
    if not live or ended:
        elsewhere = "this run is trained by another process"
        return dict.fromkeys(CONTROLS, "this run has ended" if ended else elsewhere)
    paused = status.state == "paused"
    training = paused or status.state == "training" or status.background
    why = {"pause": "already paused"} if paused else {"resume": "not paused"}
    if not training:
        why["stop"] = "no training is running"
    if status.state == "failed":
        why |= dict.fromkeys(CONTROLS[:4], "training ended with an error")
    return {control: why.get(control, "") for control in CONTROLS}


def _problems(status: Status) -> list[ProblemRow]:
    """The run's own problem first, then the probes that failed."""
    rows: list[ProblemRow] = [
        {
            "module": probe.module,
            "quantity": probe.quantity,
            "text": probe.error,
            "count": probe.n_errors,
            "disabled": probe.disabled,
        }
        for probe in status.errors
    ]
    if status.problem:
        own: ProblemRow = {
            "module": "",
            "quantity": "",
            "text": status.problem,
            "count": 1,
            "disabled": False,
        }
        rows.insert(0, own)
    return rows


def _quantity_row(row: QuantityInfo) -> QuantityRow:
    return {
        "name": row.name,
        "summary": row.summary,
        "needs": list(row.needs),
        "units": row.units,
        "cost_us": row.cost_us,
    }


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
