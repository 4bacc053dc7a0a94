"""How a run is doing, as a panel tells its views: complete to a new one, then what has changed."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from notebook_probe.explorer.messages.catalogue import Catalogue
from notebook_probe.explorer.messages.defaults import RATE, default_series
from notebook_probe.explorer.messages.probe_rows import ProbeRows
from notebook_probe.explorer.messages.wire import VERSION, ProblemRow, StatusMessage, TicketRow
from notebook_probe.run.health.status import StatusHead

__all__ = ["N_RECENT", "PanelProblems", "StatusMessages"]

N_RECENT = 90
"""Values of the scalar in the bar that are drawn as a line."""
EXPECTING = ("waiting", "training", "paused")
SILENCE_S = 1.0
PROBLEMS_KEPT = 8
ALWAYS = frozenset({"v", "type", "state", "step"})
Scalar: TypeAlias = tuple[str, float | None, list[float | None]]


def _nothing(_: str) -> Sequence[float]:
    return ()


class StatusMessages:
    """Puts a status together and says what of it is new.

    Parameters
    ----------
    recent : callable
        The values of a scalar that were recorded before there was a panel.
    """

    def __init__(
        self, catalogue: Catalogue, live: bool, recent: Callable[[str], Sequence[float]] = _nothing
    ) -> None:
        self._catalogue, self._live, self._recorded = catalogue, live, recent
        self._recent: dict[str, deque[float | None]] = {}
        self._scalar_step = -1
        self._sent: StatusMessage | None = None
        self._sent_s = 0.0

    def forget(self) -> None:
        """A view has come that knows nothing: the next message is complete."""
        self._sent = None

    def message(
        self,
        head: StatusHead,
        probes: ProbeRows,
        route: str,
        recorded: dict[str, list[str]],
        logged: list[str],
        tickets: list[TicketRow],
        greyed: Mapping[str, str],
        problems: list[ProblemRow],
    ) -> StatusMessage | None:
        """The status; None when the views know it and have got one just now.

        Parameters
        ----------
        greyed : mapping of str to str
            Control to the reason why it cannot act; empty where it can.
        problems : list
            Those of the panel itself.
        """
        own = [_problem_row(head.problem)] if head.problem else []
        message: StatusMessage = {
            "v": VERSION,
            "type": "status",
            "state": head.state,
            "step": head.step,
            "end_step": head.end_step,
            "epoch": head.epoch,
            "seconds_left": head.seconds_left,
            "rate": _finite(head.steps_per_second),
            "cost_percent": _finite(head.cost_percent),
            "budget": head.budget,
            "progress": f"measuring {head.progress}" if head.progress else "",
            "route": route,
            "attached": probes.attached,
            "tallies": probes.tallies,
            "silent": probes.silent,
            "costs": self._catalogue.costs,
            "recorded": recorded,
            "logged": logged,
            "vectors": self._catalogue.vectors,
            "problems": [*own, *probes.problems, *problems],
            "tickets": tickets,
            "can": {**greyed},
            "record": head.location,
            "nbytes": head.nbytes,
            "flushed_age_s": _finite(head.flushed_age_s),
            "dropped_rows": head.dropped_rows,
        }
        scalar = self._scalar(head)
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
        news = {
            name: part
            for name, part in message.items()
            if name in ALWAYS or name not in known or part != known[name]
        }
        return cast("StatusMessage", news)

    def _is_awaited(self, message: StatusMessage) -> bool:
        """A view of a live run takes a kernel that is silent for long to be busy or gone.

        That of a record which grows elsewhere says how old its picture is.
        """
        told = message["flushed_age_s"] is not None
        awaited = message["state"] in EXPECTING if self._live else told
        return awaited and time.monotonic() - self._sent_s > SILENCE_S

    def _scalar(self, head: StatusHead) -> Scalar | None:
        """The first scalar the user logs, with what it has been at the last refreshes."""
        if not head.scalars:
            return None
        name = next((name for _, name in default_series([*head.scalars])), RATE)
        value = head.scalars[name]
        if name not in self._recent:
            before = map(_finite, self._recorded(name)[:-1])
            self._recent[name] = deque(before, maxlen=N_RECENT)
        recent = self._recent[name]
        if head.step != self._scalar_step:
            self._scalar_step = head.step
            recent.append(_finite(float(f"{value:.4g}")))
        return name, _finite(value), list(recent)


class PanelProblems:
    """What went wrong inside the panel itself: nobody sees a print in a callback.

    The last few, the same one counted instead of repeated; from any thread.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, error: Exception, where: str) -> None:
        """Note an exception: a sentence for the panel."""
        text = f"{where}: {type(error).__name__}: {error}"
        with self._lock:
            self._counts[text] = self._counts.get(text, 0) + 1
            while len(self._counts) > PROBLEMS_KEPT:
                self._counts.popitem(last=False)

    def rows(self) -> list[ProblemRow]:
        with self._lock:
            return [_problem_row(text, count) for text, count in self._counts.items()]


def _problem_row(text: str, count: int = 1) -> ProblemRow:
    """A problem that is no probe's."""
    return {"module": "", "quantity": "", "text": text, "count": count, "disabled": False}


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
