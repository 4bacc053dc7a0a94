"""Where the training can go back to: the checkpoints that its loop keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypedDict

from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.record.format.source import Event, Source
from notebook_probe.run.controls import Controls

__all__ = ["CheckpointRow", "History"]


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


class History(Part):
    """The checkpoints of the branch that is trained; a loop of one's own has none, and no strip."""

    name: ClassVar = "history"

    def __init__(self, source: Source, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._rows = Throttled(self._rows_now)
        self._n_events = -1

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        n_events = len(self._source.events)
        if n_events != self._n_events:
            self._n_events = n_events
            self._rows.expire()
        return {"checkpoints": self._rows.value()}

    def _rows_now(self) -> list[CheckpointRow]:
        saved = (event for event in self._source.events if event.kind == "checkpoint")
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
