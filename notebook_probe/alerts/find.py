"""Asking rules about a whole record, after the fact."""

from __future__ import annotations

from dataclasses import replace

from notebook_probe.alerts.alert import Alert
from notebook_probe.alerts.listing import Alerts
from notebook_probe.alerts.rule import Rule
from notebook_probe.alerts.rules import Rules
from notebook_probe.alerts.watcher import Watcher
from notebook_probe.errors import RuleError
from notebook_probe.record.format.source import Source

__all__ = ["find_alerts", "find_all"]


def find_alerts(source: Source, *rules: Rule) -> Alerts:
    """Apply these rules, or all registered ones, to everything recorded; store nothing.

    Remarks are left out.

    Raises
    ------
    RuleError
        A rule fails.
    """
    return Alerts(alert for alert in find_all(source, *rules) if not alert.is_remark)


def find_all(source: Source, *rules: Rule) -> list[Alert]:
    """Return alerts and remarks, as `find_alerts` finds them."""
    wanted = {rule.name: rule for rule in rules} or Rules()
    found: list[Alert] = []
    problems: list[str] = []
    watcher = Watcher(source, wanted, found.append, failed=lambda step, text: problems.append(text))
    watcher.look(whole=True)
    if problems:
        raise RuleError(problems[0])
    return [replace(alert, time_ms=0) for alert in found]
