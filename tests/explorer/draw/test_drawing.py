"""When a view of a user is drawn: at its own pace, at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.draw.pace import SECOND_AFTER_S, SHARE, SHORTEST_S, Pace
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.draw.panel_side import Clock, PanelSide, nothing


def test_the_dearer_the_rarer() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.rested()
    assert pace.cost_s is None
    for cost_s in (0.084, 0.084):
        pace.drew(cost_s)
    assert pace.rest_s() == pytest.approx(0.084 / SHARE)
    clock.now_s += 0.99 * 0.084 / SHARE
    assert not pace.rested()
    clock.now_s += 0.02 * 0.084 / SHARE
    assert pace.rested()
    assert not pace.rested(n_views=2), "all of them together take so much"


def test_a_cheap_view_is_drawn_twice_a_second_at_most() -> None:
    pace = Pace(Clock())
    pace.drew(0.0001)
    assert pace.rest_s() == SHORTEST_S


def test_one_slow_drawing_does_not_stop_a_view_for_long() -> None:
    pace = Pace(Clock())
    pace.drew(3.0)
    assert pace.rest_s() == SECOND_AFTER_S, "the first one imports"
    pace.drew(0.03)
    assert pace.rest_s() == pytest.approx(1.0)
    pace.drew(9.0)
    pace.drew(0.03)
    assert pace.rest_s() == pytest.approx(1.0)


def counted(side: PanelSide, monkeypatch: pytest.MonkeyPatch, cost_s: float = 0.3) -> None:
    """A view whose every drawing takes ``cost_s`` of a core."""
    spent = iter(np.arange(0, 1000, cost_s))
    monkeypatch.setattr("time.thread_time", lambda: float(next(spent)))
    nbp.view("dear")(nothing)
    side.refresh()
    side.clock.now_s += SECOND_AFTER_S
    side.trains()
    assert side.refresh() == ["dear"]
    side.trains()


def test_while_training_runs_it_waits_for_its_pace(
    side: PanelSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(side, monkeypatch)
    side.clock.now_s += 9.9
    assert side.refresh() == []
    side.clock.now_s += 0.2
    assert side.refresh() == ["dear"]
    side.clock.now_s += 1000
    assert side.refresh() == [], "there is nothing new"


def test_its_cost_and_its_pace_are_told(side: PanelSide, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(side, monkeypatch)
    row = side.row("dear")
    assert row["cost_s"] == pytest.approx(0.3)
    assert row["every_s"] == pytest.approx(10.0)
    side.state = "paused"
    assert side.row("dear")["every_s"] is None


def test_what_is_chosen_is_drawn_at_once(side: PanelSide, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(side, monkeypatch)
    for choice in (PanelSelection(home="mean"), PanelSelection(window=(0.0, 2.0))):
        side.selection = choice
        assert side.refresh() == ["dear"]
        assert side.refresh() == []
    side.rooms["dear"] = (300, 2.0)
    assert side.refresh() == ["dear"], "the panel was resized"
    side.n_hellos += 1
    assert side.refresh() == ["dear"], "a view has come that has nothing yet"


@pytest.mark.parametrize("state", ["paused", "finished", "failed"])
def test_when_training_rests_it_is_drawn_at_once(
    side: PanelSide, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    counted(side, monkeypatch)
    assert side.refresh() == []
    side.state = state
    assert side.refresh() == ["dear"]
    assert side.refresh() == []


def test_it_is_not_drawn_while_nobody_sees_it(side: PanelSide) -> None:
    nbp.view("seen")(nothing)
    side.rooms["seen"] = None
    assert side.refresh() == []
    side.rooms["seen"] = (600, 1.0)
    side.drawings.fold("seen", True)
    assert side.refresh() == []
    assert side.row("seen")["folded"]
    side.drawings.fold("seen", False)
    assert side.refresh() == ["seen"]


def test_a_folded_view_stays_folded_when_its_cell_is_run_again(side: PanelSide) -> None:
    for _ in range(2):

        @nbp.view("again")
        def again(source: Any, selection: Any) -> None: ...

        side.refresh()
        side.drawings.fold("again", True)
    assert side.row("again")["folded"]
    assert side.shown == ["again"], "the first, before it was folded"


def test_a_view_that_is_being_drawn_is_left_alone_and_holds_up_no_other() -> None:
    tasks: list[Callable[[], None]] = []
    side = PanelSide(run=tasks.append)
    for name in ("slow", "quick"):
        nbp.view(name)(lambda source, selection: None)
    side.refresh()
    slow, quick = tasks
    quick()
    side.clock.now_s += 10
    side.trains()
    side.refresh()
    assert len(tasks) == 3, "quick alone is drawn again"
    slow()
    tasks[2]()
    assert side.shown == ["quick", "slow", "quick"]


def test_rows_and_modules_are_sent_when_new_and_when_somebody_comes(
    side: PanelSide,
) -> None:
    assert side.refresh() == []
    assert side.told == []
    nbp.view("x", esm="// x")(nothing)
    side.refresh()
    assert [message["type"] for message in side.told] == ["views", "esm"]
    side.refresh()
    assert [message["type"] for message in side.told] == ["views"], "its cost is known now"
    side.refresh()
    assert side.told == []
    side.n_hellos += 1
    side.refresh()
    assert [message["type"] for message in side.told] == ["views", "esm"]
