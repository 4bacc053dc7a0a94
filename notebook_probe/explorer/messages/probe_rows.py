"""Rows about the probes: where they are, when they fired, why not, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from notebook_probe.explorer.messages.wire import ProblemRow, SilentRow, Tally
from notebook_probe.run.health.status import COMPILED_NOTES, ProbeStatus

__all__ = ["ProbeRows", "probe_rows", "rounded"]

SilenceKind: TypeAlias = Literal["waiting", "compiled", "silent"]


@dataclass(frozen=True, slots=True)
class ProbeRows:
    """The parts of a status message that grow with the number of probes."""

    attached: list[tuple[str, str, str]]
    tallies: list[Tally]
    silent: list[SilentRow]
    problems: list[ProblemRow]

    def places_of(self, quantity: str) -> list[str]:
        """Return the modules at which a quantity is attached."""
        return [module for module, name, _ in self.attached if name == quantity]


def probe_rows(probes: Sequence[ProbeStatus]) -> ProbeRows:
    """All that is listed of these probes, in their order."""
    return ProbeRows(
        [(probe.module, probe.quantity, probe.schedule) for probe in probes],
        [
            (probe.last_step, rounded(probe.cost_us), rounded(probe.cost_percent))
            for probe in probes
        ],
        _silent_rows(probes),
        [_problem_row(probe) for probe in probes if probe.n_errors],
    )


def rounded(cost: float) -> float:
    """Two significant digits: a number that trembles is not sent over and over.

    Examples
    --------
    >>> [rounded(cost) for cost in (0.0, 8.4321, 123.4)]
    [0.0, 8.4, 120.0]
    """
    return float(f"{cost:.2g}")


def _silent_rows(probes: Sequence[ProbeStatus]) -> list[SilentRow]:
    """Return the reasons for missing values, each with the indices of its probes."""
    # Grouped by reason: thousands of probes that wait for one thing are one row.
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
    return "compiled" if probe.note in COMPILED_NOTES else "silent"


def _problem_row(probe: ProbeStatus) -> ProblemRow:
    return {
        "module": probe.module,
        "quantity": probe.quantity,
        "text": probe.error,
        "count": probe.n_errors,
        "disabled": probe.disabled,
    }
