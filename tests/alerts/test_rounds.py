"""Rules over modules that take turns: they see what they would see of modules measured together."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import notebook_probe as nbp
from notebook_probe.alerts import Alert, Rule, Watcher, find_alerts, rule
from notebook_probe.alerts.rounds import Rounds
from notebook_probe.probes.due.turns import Turns
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.branches.turns_taken import TurnsTaken
from tests.alerts.made import GAP, LAW, NAN, Table
from tests.explorer.fakes import FakeStream

PLACES = tuple(f"layer{i:02}" for i in range(64))
FACTOR = 16
TURNS = Turns(PLACES)


def smaller_than_others(grad_norm, window=2, share=0.1):  # type: ignore[no-untyped-def]
    """{grad_norm:g} at step {step}"""
    return grad_norm < share * np.fmax.reduce(grad_norm, axis=1, keepdims=True)


def falls(grad_norm, window=2):  # type: ignore[no-untyped-def]
    """{grad_norm:g} at step {step}"""
    before = np.full(grad_norm.shape, np.nan)
    before[2:] = grad_norm[:-2]
    return grad_norm < before / 4


def mostly_small(grad_norm, most=0.5):  # type: ignore[no-untyped-def]
    """{grad_norm:g} at step {step}"""
    return np.nanmedian(grad_norm, axis=1) < most


MADE: dict[str, Callable[[], Rule]] = {
    "smaller_than_others": lambda: rule(rows=2, again=3)(smaller_than_others),
    "falls": lambda: rule(falls),
    "mostly_small": lambda: rule(mostly_small),
}
"""Made in a test, which forgets them: every run follows the rules that there are."""

ROUNDS = arrays(
    np.float32,
    st.tuples(st.integers(1, 8), st.just(len(PLACES))),
    elements=st.sampled_from([0.01, 0.4, 1.0, 1.0, 2.0]),
)


def event_of(step: int, factor: int, turns: int) -> Event:
    detail = json.dumps({"every": {"grad_norm": factor}, "turns": turns})
    return Event(step, 0, "budget", "in words", detail)


def source_of(steps: Any, table: Table, events: tuple[Event, ...]) -> tuple[FakeStream, Any]:
    stream = FakeStream("every_1", PLACES, ["grad_norm"])
    stream.append(steps, grad_norm=table)
    source = SimpleNamespace(
        streams={"every_1": stream}, modules=(), events=events, recorded_name=str
    )
    return stream, source


def turn_of(place: str) -> int:
    return TURNS.turn(place, FACTOR)


def taken_apart(rounds: Table) -> tuple[list[int], Table]:
    """The rows of a run in which the modules of each round take their turns."""
    steps, rows = [], []
    for n, values in enumerate(rounds):
        for turn in sorted({*map(turn_of, PLACES)}):
            here = np.array([turn_of(place) == turn for place in PLACES])
            steps.append(n * FACTOR + turn)
            rows.append(np.where(here, values, GAP))
    return steps, np.array(rows, np.float32)


def said(alerts: Any) -> list[tuple[int, tuple[str, ...]]]:
    """Number of the round, and the modules."""
    return [(alert.step // FACTOR, tuple(sorted(alert.modules))) for alert in alerts]


@LAW
@given(ROUNDS, st.sampled_from([*MADE]))
def test_modules_that_take_turns_are_judged_as_if_they_were_measured_together(
    rounds: Table, name: str
) -> None:
    one = MADE[name]()
    together = [n * FACTOR for n in range(len(rounds))]
    _, whole = source_of(together, rounds, ())
    _, in_turns = source_of(*taken_apart(rounds), (event_of(-1, FACTOR, TURNS.n),))
    assert said(find_alerts(in_turns, one)) == said(find_alerts(whole, one))


@LAW
@given(ROUNDS, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_however_the_rows_of_a_round_come_the_same_is_said(rounds: Table, cuts: list[int]) -> None:
    steps, table = taken_apart(rounds)
    events = (event_of(-1, FACTOR, TURNS.n),)
    stream, source = source_of([], table[:0], events)
    found: list[Alert] = []
    one = MADE["falls"]()
    watcher = Watcher(source, {one.name: one}, found.append)
    first = 0
    while first < len(steps):
        end = first + cuts[first % len(cuts)]
        stream.append(steps[first:end], grad_norm=table[first:end])
        watcher.look()
        first = end
    watcher.look(whole=True)
    wanted = find_alerts(source_of(steps, table, events)[1], one)
    assert [(each.step, each.modules, each.text) for each in found] == [
        (each.step, each.modules, each.text) for each in wanted
    ]


def test_an_alert_names_the_step_at_which_its_module_was_measured() -> None:
    rounds = np.ones((4, len(PLACES)), np.float32)
    rounds[3, 40] = 0.1
    _, source = source_of(*taken_apart(rounds), (event_of(-1, FACTOR, TURNS.n),))
    (alert,) = find_alerts(source, rule(falls))
    step = 3 * FACTOR + turn_of(PLACES[40])
    assert alert.modules == (PLACES[40],)
    assert (alert.step, alert.text) == (step, f"{PLACES[40]}: 0.1 at step {step}")


def test_rows_are_joined_only_where_the_record_says_that_modules_took_turns() -> None:
    """A generator and its critic are trained in turn: these are rows of two different steps."""
    seen: list[Any] = []

    @nbp.rule
    def spy(grad_norm):  # type: ignore[no-untyped-def]
        """never"""
        seen.append(grad_norm)
        return grad_norm < 0

    half = np.arange(len(PLACES)) < len(PLACES) // 2
    table = np.where([half, ~half, half, ~half], np.float32(1), GAP)
    events = event_of(-1, 1, TURNS.n), event_of(1, FACTOR, TURNS.n)
    find_alerts(source_of(range(4), table, ())[1], spy)
    assert seen[0].shape == (4, len(PLACES))
    seen.clear()
    find_alerts(source_of(range(4), table, events[1:])[1], spy)
    assert [len(rows) for rows in seen] == [2, 1], "two rows as they are, and one round"
    assert not np.isnan(seen[1]).any()


def test_a_detail_that_is_not_understood_means_no_turns() -> None:
    for detail in ("", "nonsense", "[]", '{"turns": 4}', '{"turns": "x", "every": {}}'):
        turns = TurnsTaken([Event(0, 0, "budget", "", detail)])
        assert not turns.mask("grad_norm", np.arange(5)).any()


def test_a_resumed_run_measures_all_modules_until_its_budget_says_otherwise() -> None:
    events = event_of(9, 8, 4), Event(20, 0, "resume", ""), event_of(29, 8, 4)
    found = TurnsTaken(events).mask("grad_norm", np.arange(40))
    assert np.flatnonzero(found).tolist() == [*range(10, 21), *range(30, 40)]


def test_a_value_that_was_measured_as_nan_stays_so_in_a_round() -> None:
    rounds = Rounds()
    table = np.array([[NAN, GAP], [GAP, 1.0], [2.0, GAP]], np.float32)
    steps, every = np.arange(3), np.ones(3, bool)
    found = rounds.join(steps, table, np.zeros((3, 2)), every)
    assert found.steps.tolist() == [1]
    assert measured(found.values).tolist() == [[True, True]]
    assert found.at.tolist() == [[0, 1]]
    (left,) = rounds.end()
    assert measured(left.values).tolist() == [True, False], "no value of the round before"
