"""Which branch is shown, and which was left for it: of a run that is trained, or of a record."""

from __future__ import annotations

from typing import cast

from notebook_probe.compare.axes import Run
from notebook_probe.record.format.source import Event, Source
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.run.controls import Controls

__all__ = ["left_events", "left_of", "starts_of"]


def left_of(source: Source, controls: Controls | None) -> Source | None:
    """What was trained before, from where this branch begins; None for what never went back."""
    if controls is not None:
        return controls.left
    return source.left if isinstance(source, OpenedRecord) else None


def left_events(left: Source, source: Source) -> list[Event]:
    """What happened there that is not of this branch, too."""
    known = {*map(_key, source.events)}
    return [event for event in left.events if _key(event) not in known]


def starts_of(source: Source) -> tuple[int, ...]:
    """The first step of each branch, the one that is shown last."""
    return cast("Run", source).snapshot().branches.starts  # every source that is shown has one


def _key(event: Event) -> tuple[int, int, str, str]:
    return event.step, event.time_ms, event.kind, event.text
