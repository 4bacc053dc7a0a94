"""Alerts: rules over recorded series that say, in a sentence with numbers, what goes wrong where.

::

    rows of a stream ─▶ condition of a rule ─▶ stretches of rows ─▶ Alert ─▶ the record's events

Nothing here needs torch: a finished record is looked at by the same code as a growing one.
"""

from notebook_probe.alerts import builtin
from notebook_probe.alerts.alert import Alert
from notebook_probe.alerts.causes import Cause
from notebook_probe.alerts.find import find_alerts
from notebook_probe.alerts.listing import Alerts, read_alerts, read_remarks
from notebook_probe.alerts.rolling import mean_before, median, over_median
from notebook_probe.alerts.rule import RULES, Rule, rule
from notebook_probe.alerts.rules import Rules
from notebook_probe.alerts.watcher import Watcher

__all__ = [
    "RULES",
    "Alert",
    "Alerts",
    "Cause",
    "Rule",
    "Rules",
    "Watcher",
    "builtin",
    "find_alerts",
    "mean_before",
    "median",
    "over_median",
    "read_alerts",
    "read_remarks",
    "rule",
]
