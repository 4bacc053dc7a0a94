"""Probes and adapters that lie still; no series tells of them, so the run itself is asked."""

from __future__ import annotations

from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule

__all__ = ["stale_probe", "untrained_adapter"]


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
untrained_adapter = Rule(
    "untrained_adapter",
    _asked_of_the_run,
    (),
    MappingProxyType({"after": 20}),
    "{n_steps} steps have left it as it was: {why}",
    tells=("n_steps", "why"),
    severity="severe",
    explained_by=("grad_norm", "update_norm", "weight_norm"),
)
for asked in (stale_probe, untrained_adapter):
    RULES.add(asked.name, asked)
