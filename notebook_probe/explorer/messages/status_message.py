"""What a panel tells its views about the run, apart from pictures: the model and the status."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import TypeAlias, cast

from notebook_probe.explorer.messages.axis_entries import axis_order, in_order, owner_of
from notebook_probe.explorer.messages.catalogue import Catalogue
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.messages.reasons import reasons
from notebook_probe.explorer.messages.silence import silent_rows
from notebook_probe.explorer.messages.tallies import Tallies
from notebook_probe.explorer.messages.wire import (
    VERSION,
    ModelMessage,
    ProblemRow,
    QuantityRow,
    StatusMessage,
    TicketRow,
)
from notebook_probe.record.format.source import Source
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import QuantityInfo, Status

__all__ = ["Report"]

N_RECENT = 90
EXPECTING = ("waiting", "training", "paused")
SILENCE_S = 1.0
LASTING = frozenset({"attached", "recorded", "tallies", "silent", "costs", "vectors"})
"""Long parts of a status, told where they have changed."""

Scalar: TypeAlias = tuple[str, float | None, list[float | None]]


class Report:
    """Asks the run how it is and says what is new."""

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source, self._controls = source, controls
        self._opened = OpenedStatus(source)
        self._catalogue = Catalogue(source, controls)
        self._tallies = Tallies()
        self._recent: dict[str, deque[float | None]] = {}
        self._scalar_step = -1
        self._model_key: object = None
        self._sent: StatusMessage | None = None
        self._sent_s = 0.0

    def status(self) -> Status:
        """How the run is now."""
        return self._opened.status() if self._controls is None else self._controls.status()

    def places_of(self, quantity: str) -> list[str]:
        """The modules at which a quantity is attached."""
        return [probe.module for probe in self.status().probes if probe.quantity == quantity]

    def forget(self) -> None:
        """A view has come that knows nothing: the next messages are complete."""
        self._model_key = None
        self._sent = None

    def vectors(self) -> list[str]:
        """The quantities whose values are vectors."""
        views = self._source.vectors
        return [*dict.fromkeys(one.name for view in views.values() for one in view.variables)]

    def is_vector(self, quantity: str) -> bool:
        """Whether a quantity is a vector, also before anything is recorded of it."""
        listed = (row.is_vector for row in self._catalogue.rows if row.name == quantity)
        return quantity in self.vectors() or any(listed)

    def model(self, status: Status) -> ModelMessage | None:
        """The module table and the quantities; None when a view has them already."""
        quantities, modules = self._catalogue.rows, self._source.modules
        entries = self._entries(status)
        key = (modules, entries, [row.name for row in quantities])
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
            "entries": entries,
            "quantities": [_quantity_row(row) for row in quantities],
        }

    def _entries(self, status: Status) -> list[tuple[str, str]]:
        """What is no module, but has a place on the module axis or a probe; and its module."""
        table = {row.name: None for row in self._source.modules}
        names = [*axis_order(self._source), *(probe.module for probe in status.probes)]
        return [
            (name, owner_of(name, table)) for name in in_order([*table], names) if name not in table
        ]

    def message(
        self,
        status: Status,
        route: str,
        recorded: dict[str, list[str]],
        tickets: list[TicketRow],
        problems: list[ProblemRow],
    ) -> StatusMessage | None:
        """The status; None when a view knows it and has been told so just now."""
        probes = status.probes
        message: StatusMessage = {
            "v": VERSION,
            "type": "status",
            "state": status.state,
            "step": status.step,
            "rate": _finite(status.steps_per_second),
            "cost_percent": _finite(status.cost_percent),
            "budget": status.budget,
            "progress": f"measuring {status.progress}" if status.progress else "",
            "route": route,
            "attached": [(probe.module, probe.quantity, probe.schedule) for probe in probes],
            "tallies": self._tallies.of(probes),
            "silent": silent_rows(probes),
            "costs": self._catalogue.costs,
            "recorded": recorded,
            "vectors": self.vectors(),
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
        """What a view does not know."""
        before = self._sent
        if before is not None:
            aged: StatusMessage = {**message, "flushed_age_s": before["flushed_age_s"]}
            if aged == before and not self._is_awaited(message):
                return None
        self._sent, self._sent_s = message, time.monotonic()
        known: Mapping[str, object] = {} if before is None else {**before}
        return cast(
            "StatusMessage",
            {
                name: part
                for name, part in message.items()
                if name not in LASTING or name not in known or part != known[name]
            },
        )

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
        "is_vector": row.is_vector,
        "question": row.question,
        "of_model": row.is_of_model,
    }


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
