"""Examination of the model: requested by a click, and shown as the record has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.format.notes import EXAMINATION
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import ExamineModel, Request
from notebook_probe.run.controls import Controls

__all__ = ["ExaminationPart", "ExamineClick"]

MOST_ROWS, MOST_CHARACTERS = 100, 500
FIELDS = ("verdict", "check", "text", "advice")


class ExamineClick(TypedDict):
    """Check the model, and record what is found."""

    v: int
    type: Literal["examine"]
    id: str


def _examine(click: ExamineClick) -> Request:
    return ExamineModel()


class ExaminationPart(Part):
    """The newest examination that the record has."""

    name: ClassVar = "examination"
    clicks: ClassVar = {"examine": Click(ExamineClick, _examine)}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._n_events = 0
        self._found: Event | None = None
        self._rows: list[list[str]] = []

    def state(self, seen: Seen) -> Mapping[str, Any]:
        self._look()
        has_ended = seen.head.state in ("finished", "failed")
        return {
            "live": self._controls is not None and not has_ended,
            "step": -1 if self._found is None else self._found.step,
            "title": "" if self._found is None else self._found.text[:MOST_CHARACTERS],
            "rows": self._rows,
        }

    def _look(self) -> None:
        """Read the newest report, if it is a new one."""
        events = self._source.events
        # Of a branch there are fewer events than of the line that was left.
        begin = self._n_events if self._n_events <= len(events) else 0
        for event in events[begin:]:
            if event.kind == EXAMINATION:
                self._found, self._rows = event, _rows(event.detail)
        self._n_events = len(events)


def _rows(detail: str) -> list[list[str]]:
    """Return verdict, check, sentence and advice of each finding; none of a malformed report."""
    try:
        findings = json.loads(detail)["findings"]
        return [
            [str(one[field])[:MOST_CHARACTERS] for field in FIELDS] for one in findings[:MOST_ROWS]
        ]
    except (ValueError, TypeError, LookupError, RecursionError):
        return []
