"""Edits of alert rules during a run, and their events."""

from __future__ import annotations

import json
from collections.abc import Mapping

from notebook_probe.alerts import Rule, Rules
from notebook_probe.alerts.alert import RULE_EDIT
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.run.attach.requests import EditRule

__all__ = ["edit", "edited", "note_edit"]


def edited(rules: Rules, request: EditRule) -> Rule:
    """Return the edited rule.

    Raises
    ------
    UnknownNameError, RuleError
        For a rule that is not followed, and a number that it has not, or that cannot be.
    """
    if request.rule not in rules:
        known = near(request.rule, rules)
        raise UnknownNameError(f"no rule {request.rule!r} is followed; {known}")
    return rules[request.rule].but(**request.numbers)


def edit(rules: Rules, request: EditRule) -> str:
    """Apply the edited rule; return what was done, as text."""
    name, new = request.rule, edited(rules, request)
    words = _difference(name, rules[name].numbers, new.numbers)
    if words:
        rules[name] = new
    return words or f"{name} is so already"


def note_edit(
    events: EventSink, step: int, name: str, before: Rule | None, after: Rule | None
) -> None:
    """Keep in the record that a rule is followed otherwise than before, or no more."""
    old, new = (None if one is None else one.numbers for one in (before, after))
    if old is None or new is None:
        text = f"{name} is followed" + ("" if old is None else " no more")
    else:
        text = _difference(name, old, new)
    if text:
        events.event(step, RULE_EDIT, text, json.dumps({"rule": name, "from": old, "to": new}))


def _difference(name: str, old: Mapping[str, float | None], new: Mapping[str, float | None]) -> str:
    """Describe the changed numbers in words; "" if there are none."""
    changed = [number for number in new if new[number] != old.get(number)]
    words = [f"{one} {_number_text(old.get(one))} → {_number_text(new[one])}" for one in changed]
    return f"{name}: {', '.join(words)}" if words else ""


def _number_text(number: float | None) -> str:
    return "never" if number is None else f"{number:g}"
