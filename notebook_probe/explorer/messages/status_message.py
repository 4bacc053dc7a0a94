"""Status of a run, sent to a new view in full, then only the changes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from notebook_probe.errors import StoreSilentError
from notebook_probe.explorer.messages.catalogue import PanelCatalogue
from notebook_probe.explorer.messages.defaults import RATE, default_series
from notebook_probe.explorer.messages.probe_rows import ProbeRows
from notebook_probe.explorer.messages.wire import VERSION, ProblemRow, StatusMessage, TicketRow
from notebook_probe.json_numbers import json_number
from notebook_probe.run.health.status import StatusHead

__all__ = ["N_RECENT", "PanelProblems", "StatusMessages"]

N_RECENT = 90
"""Values of the scalar in the bar that are drawn as a line."""
EXPECTING = ("waiting", "training", "paused")
SILENCE_S = 1.0
SLOW_S = 5.0
"""Seconds after which a store is said not to answer: one far away may take some."""
PROBLEMS_KEPT = 8
ALWAYS = frozenset({"v", "type", "state", "step"})
Scalar: TypeAlias = tuple[str, float | None, list[float | None]]


def _nothing(_: str) -> Sequence[float]:
    return ()


class StatusMessages:
    """Put the status together and find what is new in it.

    Parameters
    ----------
    recent : callable
        The values of a scalar that were recorded before there was a panel.
    """

    def __init__(
        self,
        catalogue: PanelCatalogue,
        live: bool,
        recent: Callable[[str], Sequence[float]] = _nothing,
    ) -> None:
        self._catalogue, self._live, self._recorded = catalogue, live, recent
        self._recent: dict[str, deque[float | None]] = {}
        self._scalar_step = -1
        self._sent: StatusMessage | None = None
        self._sent_s = 0.0

    def forget(self) -> None:
        """Send the complete status next: a new view has nothing."""
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
        """Return the status; None if the views have it and got one recently.

        Parameters
        ----------
        greyed : mapping of str to str
            Control to the reason why it cannot act; empty where it can.
        problems : list
            Problems of the panel itself.
        """
        own = [_problem_row(head.problem)] if head.problem else []
        message: StatusMessage = {
            "v": VERSION,
            "type": "status",
            "state": head.state,
            "unheard": head.unheard,
            "step": head.step,
            "end_step": head.end_step,
            "epoch": head.epoch,
            "seconds_left": head.seconds_left,
            "rate": json_number(head.steps_per_second),
            "cost_percent": json_number(head.cost_percent),
            "budget": head.budget,
            "progress": _progress(head),
            "route": route,
            "attached": probes.attached,
            "tallies": probes.tallies,
            "silent": probes.silent,
            "costs": self._catalogue.costs,
            "recorded": recorded,
            "logged": logged,
            "vectors": self._catalogue.vectors,
            "problems": _each_once([*own, *probes.problems, *problems]),
            "tickets": tickets,
            "can": {**greyed},
            "record": head.location,
            "device": head.device,
            "nbytes": head.nbytes,
            "flushed_age_s": json_number(head.flushed_age_s),
            "dropped_rows": head.dropped_rows,
        }
        scalar = self._scalar(head)
        if scalar is not None:
            message["scalar"] = scalar
        return self._news(message)

    def _news(self, message: StatusMessage) -> StatusMessage | None:
        """Return the parts of the status that a view does not have."""
        before = self._sent
        if before is not None:
            # The age changes with every look, so it alone is no news.
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
        """Return whether to send an unchanged status: views take a silent kernel to be busy.

        The status of a record that grows elsewhere says how old the picture is.
        """
        told = message["flushed_age_s"] is not None
        awaited = message["state"] in EXPECTING if self._live else told
        return awaited and time.monotonic() - self._sent_s > SILENCE_S

    def _scalar(self, head: StatusHead) -> Scalar | None:
        """Return the first scalar the user logs, with its values at the last refreshes."""
        if not head.scalars:
            return None
        name = next((name for _, name in default_series([*head.scalars])), RATE)
        value = head.scalars[name]
        if name not in self._recent:
            before = map(json_number, self._recorded(name)[:-1])
            self._recent[name] = deque(before, maxlen=N_RECENT)
        recent = self._recent[name]
        if head.step != self._scalar_step:
            # Four digits: more are invisible in a line of 90 pixels, and cost bytes at each
            # refresh.
            self._scalar_step = head.step
            recent.append(json_number(float(f"{value:.4g}")))
        return name, json_number(value), list(recent)


class PanelProblems:
    """Problems inside the panel: a print in a callback is visible nowhere.

    Keeps the last few and counts repetitions; may be called from any thread. A store that does not
    answer is one until it does.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()
        self._waits = ""

    def add(self, error: Exception, where: str) -> None:
        """Note an exception: a sentence for the panel."""
        if isinstance(error, StoreSilentError):  # which passes
            self._waits = str(error)
            return
        text = f"{where}: {type(error).__name__}: {error}"
        with self._lock:
            # Counted by text: a problem at every refresh is one row, and memory stays bounded.
            self._counts[text] = self._counts.get(text, 0) + 1
            while len(self._counts) > PROBLEMS_KEPT:
                self._counts.popitem(last=False)

    def reads_long(self, seconds: float) -> None:
        """Note that reading the record has taken so long, and continues."""
        if seconds > SLOW_S:
            self._waits = f"reading the record: no answer of its store for {seconds:.0f} s"

    def has_read(self) -> None:
        """Note that the record could be read."""
        self._waits = ""

    def rows(self) -> list[ProblemRow]:
        waits = [_problem_row(self._waits)] if self._waits else []
        with self._lock:
            return waits + [_problem_row(text, count) for text, count in self._counts.items()]


def _each_once(rows: Iterable[ProblemRow]) -> list[ProblemRow]:
    """Return the rows without those that repeat one before: two readers of one store may fail."""
    first: dict[tuple[str, str, str], ProblemRow] = {}
    for row in rows:
        first.setdefault((row["module"], row["quantity"], row["text"]), row)
    return [*first.values()]


def _problem_row(text: str, count: int = 1) -> ProblemRow:
    """Return the row of a problem without a probe."""
    return {"module": "", "quantity": "", "text": text, "count": count, "disabled": False}


def _progress(head: StatusHead) -> str:
    """Return the running long request, as text; usually empty."""
    if head.going_to >= 0:
        return f"rewinding to step {head.going_to}"
    if head.compiling:
        return "compiling the readings"
    return f"measuring {head.progress}" if head.progress else ""
