"""History: the checkpoints that the training can go back to, and how."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.alerts.alert import ALERT
from notebook_probe.checks import is_whole
from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.left_line import left_events, left_of, starts_of
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.format.notes import CHECKPOINT
from notebook_probe.record.format.source import Event
from notebook_probe.record.store.location import local_path
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.controls import Controls
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.run.going_back.way_back import MUST_BE_FREE
from notebook_probe.run.health.status import StatusHead

__all__ = [
    "AMID",
    "CheckpointHistory",
    "CheckpointRow",
    "EvaluateClick",
    "LeftLine",
    "RewindClick",
    "WayBackInfo",
]

LONGEST_PATH = 4096
"""Characters of a path; no system has longer ones."""

AMID = (
    "The training is paused in the middle of a step: Rewind acts at once, "
    "only evaluate it waits until the training continues"
)


class CheckpointRow(TypedDict):
    """Row of one checkpoint."""

    step: int
    nbytes: int
    path: str
    loss: float | None
    time_ms: int
    """Time of writing, in milliseconds since 1970."""
    gone: bool
    """True if the file was removed."""


class LeftLine(TypedDict):
    """The parent branch: what was trained before, from the start of this branch."""

    to: int
    """Number of completed updates at its end."""
    checkpoints: list[CheckpointRow]
    n_alerts: int


class WayBackInfo(TypedDict):
    """The way back of a loop that has one."""

    restores: str
    """Restored state, as text."""
    why_not: str
    """Reason why going back is impossible now; empty if it is possible."""
    until: int | None
    """Step up to which a loop that has ended trains in the background; None for others."""
    waits: str
    """Reason why an evaluation has to wait; empty if it acts at the next step."""


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
    pause_at: int | None


class EvaluateClick(TypedDict):
    """Measure in a checkpoint and train on as before."""

    v: int
    type: Literal["evaluate"]
    id: str
    step: int
    preset: str


def _rewind(click: RewindClick) -> Request:
    schedule, until = click["schedule"], click["until"]
    return GoBack(click["step"], click["preset"], schedule, until, click["rate"], click["pause_at"])


def _evaluate(click: EvaluateClick) -> Request:
    return EvaluateAt(click["step"], click["preset"])


class CheckpointHistory(Part):
    """The checkpoints of the branch that is trained; a loop of one's own has none, and no strip."""

    name: ClassVar = "history"
    clicks: ClassVar = {
        "rewind": Click(RewindClick, _rewind, restarts=True),
        "evaluate": Click(EvaluateClick, _evaluate),
    }

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._lines = Throttled(self._lines_now)
        self._is_gone = partial(_is_gone, source.location, controls is not None)
        self._n_events = -1

    # The files of checkpoints are looked up on disk, so only with news or after a while.
    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        n_events = len(self._source.events)
        if n_events != self._n_events:
            self._n_events = n_events
            self._lines.expire()
        return {**self._lines.value(), "way": self._way_back(seen.head)}

    def _way_back(self, head: StatusHead) -> WayBackInfo | None:
        """Return how the training can go back; None if it cannot."""
        restores = "" if self._controls is None else self._controls.restores
        if not restores:
            return None
        has_ended = head.until >= 0
        is_free = head.state == "paused" or head.background or has_ended
        return {
            "restores": restores,
            "why_not": "" if is_free else MUST_BE_FREE,
            "until": head.until if has_ended else None,
            "waits": AMID if head.within_step else "",
        }

    def _lines_now(self) -> Mapping[str, Any]:
        events = self._source.events
        starts = starts_of(self._source)
        return {
            "checkpoints": _rows(events, self._is_gone),
            "branch": len(starts),
            "fork": starts[-1] if len(starts) > 1 else None,
            "left": self._parent_line(),
        }

    def _parent_line(self) -> LeftLine | None:
        """Return where the parent branch went, with its checkpoints; None without one."""
        left = left_of(self._source, self._controls)
        if left is None:
            return None
        others = left_events(left, self._source)
        return {
            "to": _n_steps(left),
            "checkpoints": _rows(others, self._is_gone),
            "n_alerts": sum(event.kind == ALERT for event in others),
        }


def _n_steps(source: RunSource) -> int:
    rows = ((one, one.n_rows) for one in source.streams.values())
    # Steps count from 0: the last one plus one is the number of completed updates.
    return max((int(one.steps(n - 1, n)[0]) + 1 for one, n in rows if n), default=0)


def _rows(events: Iterable[Event], is_gone: Callable[[str], bool]) -> list[CheckpointRow]:
    saved = (event for event in events if event.kind == CHECKPOINT)
    found = (_row(event, is_gone) for event in saved)
    rows = {row["step"]: row for row in found if row is not None}  # one saved again is the later
    return [rows[step] for step in sorted(rows)]


def _row(event: Event, is_gone: Callable[[str], bool]) -> CheckpointRow | None:
    """Return the checkpoint that an event describes; None if the event is damaged."""
    try:
        told = json.loads(event.detail)
        path, loss = str(told["path"])[:LONGEST_PATH], told.get("loss")
        return {
            "step": _count(told["step"]),
            "nbytes": _count(told["bytes"]),
            "path": path,
            "loss": None if loss is None else float(loss),
            "time_ms": event.time_ms,
            "gone": is_gone(path),
        }
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None


def _count(number: object) -> int:
    # Beyond 2**53 a browser's numbers, which are doubles, are no longer exact.
    if not (is_whole(number) and 0 <= number < 2**53):
        raise ValueError(f"{number!r:.80} is no count")
    return number


def _is_gone(location: str, is_live: bool, path: str) -> bool:
    r"""Return whether the file of a checkpoint is missing; False if it may not be looked up.

    The path is a claim of the record. On Windows, looking for ``\\host\share`` sends that host the
    user's name and a hash of the password. So a share is never looked for, and what an opened
    record names only in the folder in which the record lies. A live run saves where it likes.
    """
    if "://" in path or path.startswith(("\\\\", "//")):
        return False
    # A live run has written the path itself.
    if is_live:
        return not Path(path).exists()
    place = local_path(location)
    if place is None:
        return False
    # A record may have been moved with its folder; paths outside of it are not looked up.
    folder = place.absolute().parent
    found = Path(os.path.normpath(folder / path))
    return found.is_relative_to(folder) and not found.exists()
