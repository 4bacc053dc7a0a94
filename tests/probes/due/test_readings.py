"""Costs of the readings of a set of due probes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from notebook_probe.probes.due.readings import Readings


def test_a_probe_for_which_no_time_was_spent_since_costs_nothing() -> None:
    spent: list[tuple[tuple[str, ...], float]] = [(("norm",), 0.1), (("norm",), 0.2)]
    readings: Any = object.__new__(Readings)
    readings.calls = readings.parameters = readings.replay = {}
    readings.batch = SimpleNamespace(seconds={})
    readings.reader = SimpleNamespace(costs=lambda: spent)
    readings._spent_before = {}
    spent.append((("norm",), 0.3))
    readings.forget_costs()
    spent.reverse()  # sums in another order differ in their last digit: 0.6 and 0.6000000000000001
    assert readings.seconds() == {"norm": 0.0}
    spent.append((("norm",), 0.25))
    assert 0.249 < readings.seconds()["norm"] < 0.251
