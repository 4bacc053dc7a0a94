"""Why probes have no value, by reason: some are only not due yet, others should fire and do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from notebook_probe.explorer.messages.wire import SilentRow
from notebook_probe.run.health.status import COMPILED, ProbeStatus

__all__ = ["silent_rows"]

SilenceKind: TypeAlias = Literal["waiting", "compiled", "silent"]


def silent_rows(probes: Sequence[ProbeStatus]) -> list[SilentRow]:
    """The reasons why probes have no value, each with the places of its probes in the list."""
    groups: dict[tuple[SilenceKind, str], list[int]] = {}
    for place, probe in enumerate(probes):
        if probe.note:
            groups.setdefault((_kind(probe), probe.note), []).append(place)
    return [
        {"kind": kind, "reason": reason, "probes": places}
        for (kind, reason), places in groups.items()
    ]


def _kind(probe: ProbeStatus) -> SilenceKind:
    if probe.waits:
        return "waiting"
    return "compiled" if probe.note == COMPILED else "silent"
