"""Probes without values come together by reason; what only waits is told from what is wrong."""

from __future__ import annotations

from typing import Any

from notebook_probe.explorer.messages.probe_rows import probe_rows
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
    assert probe_rows(probes).silent == [
        {"kind": "silent", "reason": "never called", "probes": [0, 4]},
        {"kind": "compiled", "reason": COMPILED, "probes": [2]},
        {"kind": "waiting", "reason": "first value at step 50", "probes": [3]},
    ]
    assert probe_rows([probe("b", last_step=3)]).silent == []


def test_each_probe_has_a_tally_and_those_that_failed_a_problem() -> None:
    rows = probe_rows(
        [
            probe("a", last_step=3, cost_us=8.4321, cost_percent=0.06789),
            probe("b", n_errors=2, error="ValueError: no"),
        ]
    )
    assert rows.attached == [("a", "output_std", "every(1)"), ("b", "output_std", "every(1)")]
    assert rows.tallies == [(3, 8.4, 0.068), (-1, 0.0, 0.0)]
    assert [(row["module"], row["count"]) for row in rows.problems] == [("b", 2)]
    assert rows.places_of("output_std") == ["a", "b"]
    assert rows.places_of("output_mean") == []
