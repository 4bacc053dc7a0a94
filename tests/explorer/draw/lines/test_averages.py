"""Averages of lines: of every recorded value, drawn at the pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from notebook_probe.explorer.draw.lines import average_lines
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.draw.lines.decoded import A, drawn, drawn_whole, source_of
from tests.explorer.fakes import FakeSource, FakeStream


def test_an_average_comes_after_the_answer_to_a_click_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(average_lines, "AT_ONCE", 1000)
    monkeypatch.setattr(average_lines, "PER_FRAME", 3000)
    source, view = source_of(np.ones((10_000, 2))), Lines()
    selection = PanelSelection(smooth=0.9).with_series(A)
    shares = [drawn(view, source, selection)[0]["averaged"] for _ in range(5)]
    assert shares == pytest.approx([0.1, 0.4, 0.7, 1.0, 1.0])
    message, _ = drawn(view, source, replace(selection, smooth=0.99))
    assert (message["smooth"], message["averaged"]) == (0.99, pytest.approx(0.1))
    message, _ = drawn(view, source, replace(selection, smooth=0.0))
    assert (message["averaged"], message["series"][0]["n_average"]) == (1.0, 0)


def test_an_average_begins_when_its_series_does_and_ends_with_it() -> None:
    source = source_of(np.ones((100, 2)))
    view, selection = Lines(), PanelSelection(smooth=0.9, log_y=False).with_series(("c", "norm"), A)
    _, _, [none, some] = drawn_whole(view, source, selection)
    assert (len(none[0]), len(some[0])) == (0, 100)
    late = FakeStream("late", ["c"], ["norm"])
    late.append(range(50, 150), norm=3.0)
    source.given.append(late)
    _, _, [(x, y), _] = drawn_whole(view, source, selection)
    np.testing.assert_array_equal(x, np.arange(50, 150))
    np.testing.assert_allclose(y, 3.0)


def test_averages_are_drawn_over_time_too_whatever_the_schedule() -> None:
    one, other = FakeStream("every_1", ["a"], ["norm"]), FakeStream("every_10", ["a"], ["norm"])
    one.append(range(20), norm=1.0)
    other.append(range(30, 60, 10), norm=3.0)
    selection = PanelSelection(smooth=0.5, log_y=False, x_axis="time").with_series(A)
    _, [(x, _)], [(at, y)] = drawn_whole(Lines(), FakeSource(one, other), selection)
    np.testing.assert_array_equal(at, x)
    np.testing.assert_allclose(at, np.array([*range(20), 30, 40, 50]) / 10, rtol=1e-6)
    np.testing.assert_allclose(y[-3:], [2.0, 2.5, 2.75], rtol=1e-5)


def test_an_average_is_of_a_tenth_of_the_recorded_values_at_most_however_few_are_drawn() -> None:
    steps = np.arange(40)
    source, values = source_of(np.ones(40)), 1.0 + steps % 2
    source.given[0] = FakeStream("every_1", ["a"], ["norm"])
    source.given[0].append(steps, norm=values[:, None])
    chosen = PanelSelection(smooth=0.99, log_y=False).with_series(A)
    message, _, [(_, y)] = drawn_whole(Lines(), source, chosen)
    [head] = message["series"]
    assert 1 - 10 / 36 <= head["weight"] <= 1 - 10 / 40
    total = mass = 0.0
    for value in values:
        total, mass = head["weight"] * total + value, head["weight"] * mass + 1
    assert y[-1] == pytest.approx(total / mass)
    close = replace(chosen, window=(30.0, 35.0))
    assert drawn(Lines(), source, close)[0]["series"][0]["weight"] == head["weight"]
    few = source_of(np.ones(9))
    assert drawn(Lines(), few, chosen)[0]["series"][0]["n_average"] == 0


def test_an_average_of_a_series_that_grows_is_seldom_begun_anew() -> None:
    weights = [drawn_weight(n) for n in range(10, 120)]
    assert weights == sorted(weights)
    assert weights[-1] == 0.9
    assert len(set(weights)) < 30
    assert all(weight <= 1 - 10 / n for n, weight in zip(range(10, 120), weights, strict=True))


def drawn_weight(n: int) -> float:
    chosen = PanelSelection(smooth=0.9).with_series(A)
    return float(drawn(Lines(), source_of(np.ones(n)), chosen)[0]["series"][0]["weight"])


def test_a_share_beside_a_size_stands_on_its_logarithmic_axis_and_keeps_a_linear_average() -> None:
    stream = FakeStream("every_1", ["a"], ["norm", "dead_fraction"])
    dead = np.where(np.arange(200) < 100, 0.0, 0.5)[:, None]
    stream.append(range(200), norm=10.0, dead_fraction=dead)
    both = PanelSelection(smooth=0.9).with_series(A, ("a", "dead_fraction"))
    message, _, [_, (x, y)] = drawn_whole(Lines(), FakeSource(stream), both)
    assert message["log_y"] is True
    assert np.isfinite(y).all()
    assert y[x < 100].max() == 0
    assert 0.4 < y[-1] < 0.5
