"""Rule about good runs, with which `run.facts.reference_watch` compares a live one."""

from __future__ import annotations

from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule

__all__ = ["DIFFERS", "differs_from_reference"]

DIFFERS = "differs_from_reference"


def _differs() -> None:
    """A quantity that differs from the references of `watch`, where it first does.

    ``factor`` is the smallest ratio that counts, 0 for what the number of references allows.
    """


differs_from_reference = Rule(
    DIFFERS,
    _differs,
    (),
    MappingProxyType({"factor": 0.0}),
    "{what} from step {since} on, {rank}; run.find_differences() lists them",
    tells=("what", "rank"),
    again=1,
)

RULES.add(differs_from_reference.name, differs_from_reference)
