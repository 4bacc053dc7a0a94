"""The shown branch and its parent branch, of a running training or of a record."""

from __future__ import annotations

from notebook_probe.record.format.source import Event
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["left_events", "left_of", "starts_of"]


def left_of(source: RunSource, controls: Controls | None) -> RunSource | None:
    """Return the parent branch from the start of this branch; None if it never went back."""
    if controls is not None:
        return controls.parent
    return source.parent if isinstance(source, OpenedRecord) else None


def left_events(left: RunSource, source: RunSource) -> list[Event]:
    """Return the events of the parent branch that are not of this branch, too."""
    # Both branches read the events before the fork from the same place, as equal but separate
    # values.
    known = {*map(_key, source.events)}
    return [event for event in left.events if _key(event) not in known]


def starts_of(source: RunSource) -> tuple[int, ...]:
    """Return the first step of each branch; the shown branch is last."""
    return source.snapshot().branches.starts


def _key(event: Event) -> tuple[int, int, str, str]:
    return event.step, event.time_ms, event.kind, event.text
