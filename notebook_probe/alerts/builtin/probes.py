"""Probes that have fallen silent; no series tells of them, so the run itself is asked."""

from __future__ import annotations

from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule

__all__ = ["stale_probe"]


def _asked_of_the_run() -> None:
    """A rule without quantities is followed by whoever knows what it is about."""


stale_probe = Rule(
    "stale_probe",
    _asked_of_the_run,
    (),
    MappingProxyType({"due": 3}),
    "{names} had no value at {missed:.0f} due steps: {note}",
    tells=("names", "missed", "note"),
)
RULES.add(stale_probe.name, stale_probe)
