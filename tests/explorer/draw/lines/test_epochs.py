"""Lines over epochs: this run's, their averages and events, and those of other runs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.others.drawn_lines import Drawn, beside_frame
from notebook_probe.record.format.source import ROOT, Event
from tests.explorer.draw.lines.decoded import A, drawn, drawn_whole, source_of
from tests.explorer.fakes import START_MS, FakeSource

OVER_EPOCHS = PanelSelection(x_axis="epoch", log_y=False, smooth=0.0).with_series(A)
N_STEPS = 100
STEPS = np.arange(N_STEPS)
EPOCHS = np.interp(STEPS, [0, 40, 60, 80, 100], [0, 1, 2, 3, 4])


def source_with(*starts: int) -> FakeSource:
    source = source_of(np.sin(STEPS))
    source.events = tuple(
        Event(step, START_MS + step, "epoch", "", json.dumps({"epoch": number}))
        for number, step in enumerate(starts)
    )
    return source


def test_lines_and_averages_are_at_their_epochs() -> None:
    source = source_with(0, 40, 60, 80)
    message, [(x, _)], [(average, _)] = drawn_whole(
        Lines(), source, replace(OVER_EPOCHS, smooth=0.5)
    )
    np.testing.assert_allclose(x, EPOCHS, atol=1e-6)
    np.testing.assert_allclose(average, EPOCHS, atol=1e-6)
    assert (message["x_axis"], message["refused"]) == ("epoch", {})
    np.testing.assert_allclose(message["knots"], [(0, 0), (40, 1), (100, 4)])


def test_events_and_values_that_are_not_finite_are_at_their_epochs() -> None:
    source = source_with(0, 40, 60, 80)
    source.given[0]._values["norm"][50] = np.inf
    source.events = (*source.events, Event(70, START_MS, "attach", "norm"))
    message, _ = drawn(Lines(), source, OVER_EPOCHS)
    at = [x + message["x0"] for x, _, _ in message["events"]]
    assert sorted(at) == [0.0, 1.0, 2.0, 2.5, 3.0]
    assert [one + message["x0"] for one in message["series"][0]["marks"]] == [1.5]


def test_a_window_of_steps_is_drawn_at_its_epochs() -> None:
    selection = replace(OVER_EPOCHS, window=(50.0, 60.0))
    _, [(x, _)] = drawn(Lines(), source_with(0, 40, 60, 80), selection)
    np.testing.assert_allclose(x, EPOCHS[49:62], atol=1e-6)


def test_a_formula_is_drawn_over_epochs() -> None:
    selection = replace(OVER_EPOCHS, series=()).with_series((ROOT, "= 2 * norm@a"))
    message, [(x, y)] = drawn(Lines(), source_with(0, 40, 60, 80), selection)
    assert "problem" not in message["series"][0]
    np.testing.assert_allclose(x, EPOCHS, atol=1e-6)
    np.testing.assert_allclose(y, 2 * np.sin(STEPS), rtol=1e-5)


def test_the_axis_follows_a_run_that_grows() -> None:
    source, lines = source_with(0), Lines()
    _, [(x, _)] = drawn(lines, source, OVER_EPOCHS)
    np.testing.assert_allclose(x, STEPS / N_STEPS, atol=1e-6)
    source.events = source_with(0, 40, 60, 80).events
    _, [(x, _)] = drawn(lines, source, OVER_EPOCHS)
    np.testing.assert_allclose(x, EPOCHS, atol=1e-6)


def test_a_run_without_epochs_is_drawn_over_steps_with_the_reason() -> None:
    source = source_of(np.sin(STEPS))
    message, [(x, _)] = drawn(Lines(), source, OVER_EPOCHS)
    np.testing.assert_array_equal(x, STEPS)
    assert message["x_axis"] == "step"
    why = "epochs are not recorded in fake; run.log(epoch=...) or run.batches(loader) does it"
    assert message["refused"] == {"epoch": why}
    assert drawn(Lines(), source, replace(OVER_EPOCHS, x_axis="step"))[0]["refused"]


def beside(source: FakeSource, steps: np.ndarray) -> np.ndarray:
    """x of another run's line, which is given over steps of this one."""
    other = {"/other": {A: Drawn(steps, np.ones(len(steps)))}}
    message, [buffer] = beside_frame(source, OVER_EPOCHS, other)
    n = message["series"][0]["n"]
    return np.frombuffer(buffer, "<f4")[:n] + message["x0"]


def test_lines_of_other_runs_are_at_the_epochs_of_this_one() -> None:
    steps = np.array([20.0, 50.0, 90.5, 200.0])
    np.testing.assert_allclose(
        beside(source_with(0, 40, 60, 80), steps), [0.5, 1.5, 3.525, 9.0], rtol=1e-6
    )
    np.testing.assert_array_equal(beside(source_of(np.sin(STEPS)), steps), steps)
