"""Where the training can go back to: the checkpoints that its loop keeps, and the way there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.alerts.alert import ALERT
from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.left_line import left_events, left_of, starts_of
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.format.notes import CHECKPOINT
from notebook_probe.record.format.source import Event, Source
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.controls import Controls
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.run.going_back.way_back import MUST_BE_FREE
from notebook_probe.run.health.status import StatusHead

__all__ = ["AMID", "CheckpointRow", "EvaluateClick", "History", "LeftLine", "RewindClick", "Way"]


AMID = (
    "The training is held in the midst of a step: Rewind acts at once, "
    "only evaluate it waits until the training goes on"
)


class CheckpointRow(TypedDict):
    """One checkpoint."""

    step: int
    nbytes: int
    path: str
    loss: float | None
    time_ms: int
    """When it was written, since 1970."""
    gone: bool
    """There is no file any more."""


class LeftLine(TypedDict):
    """What was trained before, from where this branch begins."""

    to: int
    """So many updates were complete when it was left."""
    checkpoints: list[CheckpointRow]
    n_alerts: int


class Way(TypedDict):
    """The way back of a loop that has one."""

    restores: str
    """What is as it was, in words."""
    why_not: str
    """Why it cannot be gone now; empty where it can."""
    waits: str
    """What an evaluation waits for; empty where it acts at the next step."""


class RewindClick(TypedDict):
    """Go back to a checkpoint and train on from there; see `GoBack`."""

    v: int
    type: Literal["rewind"]
    id: str
    step: int
    preset: str
    schedule: str
    until: int | None
    rate: float | None
    hold_at: int | None


class EvaluateClick(TypedDict):
    """Measure in a checkpoint and train on as before."""

    v: int
    type: Literal["evaluate"]
    id: str
    step: int
    preset: str


def _rewind(click: RewindClick) -> Request:
    schedule, until = click["schedule"], click["until"]
    return GoBack(click["step"], click["preset"], schedule, until, click["rate"], click["hold_at"])


def _evaluate(click: EvaluateClick) -> Request:
    return EvaluateAt(click["step"], click["preset"])


class History(Part):
    """The checkpoints of the branch that is trained; a loop of one's own has none, and no strip."""

    name: ClassVar = "history"
    clicks: ClassVar = {
        "rewind": Click(RewindClick, _rewind),
        "evaluate": Click(EvaluateClick, _evaluate),
    }

    def __init__(self, source: Source, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._lines = Throttled(self._lines_now)
        self._n_events = -1

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        n_events = len(self._source.events)
        if n_events != self._n_events:
            self._n_events = n_events
            self._lines.expire()
        return {**self._lines.value(), "way": self._way(seen.head)}

    def _way(self, head: StatusHead) -> Way | None:
        restores = "" if self._controls is None else self._controls.restores
        if not restores:
            return None
        is_free = head.state == "paused" or head.background
        why_not = "" if is_free else MUST_BE_FREE
        return {"restores": restores, "why_not": why_not, "waits": AMID if head.amid else ""}

    def _lines_now(self) -> Mapping[str, Any]:
        events = self._source.events
        starts = starts_of(self._source)
        return {
            "checkpoints": _rows(events),
            "branch": len(starts),
            "fork": starts[-1] if len(starts) > 1 else None,
            "left": self._left(),
        }

    def _left(self) -> LeftLine | None:
        left = left_of(self._source, self._controls)
        if left is None:
            return None
        others = left_events(left, self._source)
        return {
            "to": _n_steps(left),
            "checkpoints": _rows(others),
            "n_alerts": sum(event.kind == ALERT for event in others),
        }


def _n_steps(source: Source) -> int:
    rows = ((one, one.n_rows) for one in source.streams.values())
    return max((int(one.steps(n - 1, n)[0]) + 1 for one, n in rows if n), default=0)


def _rows(events: Iterable[Event]) -> list[CheckpointRow]:
    saved = (event for event in events if event.kind == CHECKPOINT)
    rows = {row["step"]: row for row in map(_row, saved)}  # one saved again is the later one
    return [rows[step] for step in sorted(rows)]


def _row(event: Event) -> CheckpointRow:
    told = json.loads(event.detail)
    return {
        "step": told["step"],
        "nbytes": told["bytes"],
        "path": told["path"],
        "loss": told.get("loss"),
        "time_ms": event.time_ms,
        "gone": _is_gone(told["path"]),
    }


def _is_gone(path: str) -> bool:
    """Of a file of this machine; of another place nobody asks."""
    return "://" not in path and not Path(path).exists()
