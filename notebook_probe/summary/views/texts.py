"""Texts that a user has noted, by step."""

from __future__ import annotations

from typing import Any

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.notes import OWN_KINDS, REFERENCE
from notebook_probe.record.format.source import Source
from notebook_probe.summary.views.images import shown_steps
from notebook_probe.summary.views.overlay import of_two_runs

__all__ = ["texts"]

NOT_SHOWN = OWN_KINDS | {
    "epoch",
    "look",
    "look_gone",
    "missed",
    "probe_batch",
    REFERENCE,
    "remark",
    "rule",
    "samples",
}
"""Kinds of events of the package: what happened, not what the model said."""
MOST_STEPS = 200
LONGEST = 10_000
"""Characters of a text that are sent."""


def texts(source: Source, selection: PanelSelection) -> dict[str, Any] | None:
    """Texts of `Run.note` at a step, a series for each kind."""
    return of_two_runs(source, selection, _texts)


def _texts(source: Source) -> list[dict[str, Any]]:
    by_kind: dict[str, dict[int, list[str]]] = {}
    for event in source.events:
        if event.kind not in NOT_SHOWN:
            by_kind.setdefault(event.kind, {}).setdefault(event.step, []).append(event.text)
    return [_shown_texts(kind, at_steps) for kind, at_steps in by_kind.items()]


def _shown_texts(kind: str, at_steps: dict[int, list[str]]) -> dict[str, Any]:
    """Return the texts of some steps."""
    steps = sorted(at_steps)
    shown = [steps[at] for at in shown_steps(len(steps), MOST_STEPS)]
    joined = ["\n\n".join(at_steps[step])[:LONGEST] for step in shown]
    return {"name": kind, "steps": shown, "texts": joined}
