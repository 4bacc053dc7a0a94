"""However rows come in pieces, the same is said, and it is what an oracle finds one by one."""

from __future__ import annotations

import math
from statistics import median as exact_median
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from notebook_probe.alerts import RULES, Alert, Rule, Watcher, find_alerts, over_median, rule
from tests.alerts.made import GAP, LAW, NAN, Table, expected
from tests.explorer.fakes import FakeStream

MODULES = ("a", "b")
BROKEN = arrays(
    np.float32,
    st.tuples(st.integers(1, 30), st.just(2)),
    elements=st.sampled_from([0.0, 1.0, 1.0, 0.0, 20.0, math.inf]),
    fill=st.nothing(),
)
HOLES = arrays(np.int8, (30, 2), elements=st.integers(0, 4), fill=st.nothing())
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


def with_holes(table: Table, holes: np.ndarray) -> Table:
    """Some cells not measured, some measured and NaN."""
    holes = holes[: len(table)]
    return np.where(holes == 0, GAP, np.where(holes == 1, NAN, table)).astype(np.float32)


def in_pieces(rule: Rule, table: Table, cuts: list[int], every: int) -> list[Alert]:
    """What is said while rows come, a few at each look."""
    found: list[Alert] = []
    quantity, start = rule.quantities[0], 0
    stream = FakeStream("every_1", MODULES, [quantity])
    source: Any = SimpleNamespace(
        streams={"every_1": stream}, modules=(), events=(), recorded_name=str
    )
    watcher = Watcher(source, {rule.name: rule}, found.append)
    while start < len(table):
        piece = table[start : start + cuts[start % len(cuts)]]
        stream.append([(start + row) * every for row in range(len(piece))], **{quantity: piece})
        watcher.look()
        start += len(piece)
    assert [(one.step, one.modules, one.text, one.began) for one in found] == [
        (one.step, one.modules, one.text, one.began) for one in find_alerts(source, rule)
    ]
    return found


def places(alerts: list[Alert]) -> set[tuple[int, int]]:
    return {(alert.step, MODULES.index(module)) for alert in alerts for module in alert.modules}


@LAW
@given(
    BROKEN, HOLES, CUTS, st.integers(1, 3), st.integers(1, 4), st.integers(0, 9),
    st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_a_threshold_is_told_once_per_stretch(
    table: Table,
    holes: np.ndarray,
    cuts: list[int],
    every: int,
    rows: int,
    steps: int,
    again: int | None,
) -> None:
    rule = RULES["dead_units"].but(rows=rows, steps=steps, again=again)
    table = with_holes(table, holes)
    found = in_pieces(rule, table, cuts, every)
    wanted = expected(rule, lambda seen: seen[-1] > 0.5, table, range(0, len(table) * every, every))
    assert places(found) == wanted


@LAW
@given(BROKEN, HOLES, CUTS)
def test_a_rule_with_a_window_sees_the_rows_before_in_every_piece(
    table: Table, holes: np.ndarray, cuts: list[int]
) -> None:
    def sudden(grad_norm: np.ndarray, window: int = 12) -> np.ndarray:
        """{grad_norm}"""
        return over_median(grad_norm, window, 4.0) > 4

    table = with_holes(table, holes)

    def exceeds(seen: list[float]) -> bool:
        before = [value for value in seen[:-1][-12:] if not math.isnan(value)]
        usual = exact_median(before) if len(before) >= 10 else 0.0
        return usual > 0 and math.isfinite(seen[-1]) and seen[-1] / usual > 4

    made = rule(again=2)(sudden)
    found = in_pieces(made, table, cuts, 1)
    assert places(found) == expected(made, exceeds, table, range(len(table)))
