"""Probes without values come together by reason; what only waits is told from what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from notebook_probe.explorer.messages.silence import silent_rows
from notebook_probe.explorer.messages.tallies import Tallies
from notebook_probe.run.health.status import COMPILED, ProbeStatus


def probe(module: str, last_step: int = -1, **fields: Any) -> ProbeStatus:
    return ProbeStatus(module, "output_std", "every(1)", 0, last_step + 1, last_step, **fields)


def test_probes_are_grouped_by_reason_and_those_that_fire_are_in_no_group() -> None:
    probes = [
        probe("a", note="never called"),
        probe("b", last_step=3),
        probe("c", note=COMPILED),
        probe("d", note="first value at step 50", waits=True),
        probe("e", note="never called"),
    ]
    assert silent_rows(probes) == [
        {"kind": "silent", "reason": "never called", "probes": [0, 4]},
        {"kind": "compiled", "reason": COMPILED, "probes": [2]},
        {"kind": "waiting", "reason": "first value at step 50", "probes": [3]},
    ]
    assert silent_rows([probe("b", last_step=3)]) == []


def test_tallies_are_told_once_a_second_and_at_once_when_the_probes_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("notebook_probe.explorer.messages.tallies.time.monotonic", lambda: now)
    tallies = Tallies()
    first = probe("a", last_step=3, cost_us=8.4321, cost_percent=0.06789)
    assert tallies.of([first]) == [(3, 8.4, 0.068)]
    now += 0.5
    assert tallies.of([probe("a", last_step=9)]) == [(3, 8.4, 0.068)]
    assert tallies.of([probe("a", last_step=9), probe("b")]) == [(9, 0.0, 0.0), (-1, 0.0, 0.0)]
    now += 1.1
    assert tallies.of([probe("a", last_step=12), probe("b", last_step=12)])[0][0] == 12
