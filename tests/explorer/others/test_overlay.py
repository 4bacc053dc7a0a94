"""Series of other runs over the steps of one: as they were recorded, aligned, as a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.others.overlay import RunOverlay
from notebook_probe.explorer.others.shelf import Shelf
from notebook_probe.figures import LineOptions, compared
from tests.explorer.others.records import train

LOSS = ("(root)", "loss")
RATIO = ("0", "update_ratio")
LOSSES = {"own": (4.0, 3.0, 2.0, 1.0), "a": (8.0, 4.0, 2.0, 1.0, 0.5, 0.25), "b": (2.0, 1.0)}
Lines = dict[tuple[str, str], npt.NDArray[np.float32]]


class Panel:
    """What a panel of `own` draws beside it, at once."""

    def __init__(self, folder: Path, configs: Mapping[str, dict[str, Any]] | None = None) -> None:
        for name, losses in LOSSES.items():
            train(folder / f"{name}.zarr", losses, config=(configs or {}).get(name))
        self.folder, self.now_s = folder, 0.0
        source = nbp.open_run(folder / "own.zarr")
        self.shelf = Shelf(source, run=lambda task: task())
        self.beside = RunOverlay(source, self.shelf, clock=lambda: self.now_s)
        self.selection = PanelSelection(smooth=0.0).with_series(LOSS, RATIO)

    def run(self, name: str) -> str:
        return str(self.folder / f"{name}.zarr")

    def shows(self, *others: str, **changes: Any) -> list[tuple[dict[str, Any], Any]]:
        """The frames that are news of a selection."""
        self.now_s += 100.0
        chosen = replace(self.selection, others=tuple(map(self.run, others)), **changes)
        self.shelf.keep(chosen.others)
        self.beside.offer(chosen)
        return [one for one in self.beside.frames() if one[0]["type"] == "beside"]  # type: ignore[misc]


@pytest.fixture
def folder_panel(tmp_path: Path) -> Panel:
    return Panel(tmp_path)


def drawn(frame: tuple[dict[str, Any], Any]) -> Lines:
    """(run, quantity) -> its arrays, one below the other."""
    message, [buffer] = frame
    numbers = np.frombuffer(buffer, "<f4")
    found = {}
    for line in message["series"]:
        n_arrays = 4 if line["banded"] else 2
        rows = numbers[line["offset"] :][: n_arrays * line["n"]].reshape(n_arrays, line["n"])
        shifted = np.zeros((n_arrays, 1), np.float32)
        shifted[0] = message["x0"]
        found[Path(line["run"]).stem, line["quantity"]] = rows + shifted
    return found


def test_a_series_of_another_run_is_drawn_as_it_was_recorded(folder_panel: Panel) -> None:
    [frame] = folder_panel.shows("a", "b")
    lines = drawn(frame)
    np.testing.assert_array_equal(lines["a", "loss"], [range(6), LOSSES["a"]])
    np.testing.assert_array_equal(lines["b", "loss"], [range(2), LOSSES["b"]])
    there = nbp.open_run(folder_panel.run("a")).series("0", "update_ratio")
    np.testing.assert_array_equal(lines["a", "update_ratio"], [there.step, there.values])


def test_averages_alone_are_drawn_where_lines_are_smoothed(folder_panel: Panel) -> None:
    losses = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    train(folder_panel.folder / "long.zarr", losses.tolist())
    [frame] = folder_panel.shows("long", smooth=0.5, log_y=False)
    average, expected = 0.0, []
    for k, loss in enumerate(losses):
        average = 0.5 * average + 0.5 * loss
        expected.append(average / (1 - 0.5 ** (k + 1)))
    np.testing.assert_allclose(drawn(frame)["long", "loss"], [range(40), expected], rtol=1e-5)


def test_a_formula_is_computed_of_the_series_of_each_run(folder_panel: Panel) -> None:
    formula = ("(root)", "= 1 - loss / 2")
    folder_panel.selection = folder_panel.selection.with_series(formula)
    [frame] = folder_panel.shows("a", "b")
    lines = drawn(frame)
    for name in ("a", "b"):
        steps, values = lines[name, formula[1]]
        np.testing.assert_array_equal(steps, range(len(LOSSES[name])))
        np.testing.assert_array_equal(values, 1 - np.array(LOSSES[name]) / 2)
    [frame] = folder_panel.shows("a", "b", grouped=True, log_y=False)
    [message, _] = frame
    [group] = [one for one in message["series"] if one["quantity"] == formula[1]]
    assert (group["n_runs"], group["banded"]) == (2, True)
    steps, mean, low, high = drawn(frame)["", formula[1]]
    np.testing.assert_allclose([steps[0], mean[0]], [0, 1 - 5 / 2], rtol=1e-6)
    np.testing.assert_allclose([low[0], high[0]], [1 - 8 / 2, 1 - 2 / 2], atol=1e-6)


def test_a_formula_whose_series_is_not_recorded_there_has_no_points(folder_panel: Panel) -> None:
    formula = ("(root)", "= 1 - accuracy")
    folder_panel.selection = folder_panel.selection.with_series(formula)
    [(message, _)] = folder_panel.shows("a")
    counts = {line["quantity"]: line["n"] for line in message["series"]}
    assert counts == {"loss": 6, "update_ratio": 6, "= 1 - accuracy": 0}


def test_what_is_not_recorded_there_is_named_with_no_points(folder_panel: Panel) -> None:
    folder_panel.selection = folder_panel.selection.with_series(("(root)", "accuracy"))
    [(message, _)] = folder_panel.shows("a")
    counts = {line["quantity"]: line["n"] for line in message["series"]}
    assert counts == {"loss": 6, "update_ratio": 6, "accuracy": 0}


def test_by_loss_a_run_stands_where_this_one_was_as_good(folder_panel: Panel) -> None:
    [frame] = folder_panel.shows("a", aligned="loss")
    # own loss is 4, 3, 2, 1 at steps 0 to 3: 8 is worse than any, 0.5 and 0.25 it never reached
    np.testing.assert_array_equal(drawn(frame)["a", "loss"], [[0, 2, 3], [4, 2, 1]])
    source, other = nbp.open_run(folder_panel.run("own")), nbp.open_run(folder_panel.run("a"))
    picture = compared(source, other, [("", "loss")], by="loss", look=LineOptions(log_y=False))
    [line] = [one for one in picture.axes[0].lines if one.get_linestyle() != "-"]
    np.testing.assert_array_equal(line.get_xydata().T, drawn(frame)["a", "loss"])  # type: ignore[union-attr]


def test_by_samples_steps_are_as_far_apart_as_their_batches_are_large(tmp_path: Path) -> None:
    panel = Panel(tmp_path, {"own": {"batch_size": 32}, "a": {"batch_size": 16}})
    [frame] = panel.shows("a", "b", aligned="samples")
    np.testing.assert_array_equal(drawn(frame)["a", "loss"][0], np.arange(6) / 2)
    assert list(panel.beside.problems) == [panel.run("b")]
    assert "samples are not recorded in b" in panel.beside.problems[panel.run("b")]
    assert panel.shows("a") != []
    assert panel.beside.problems == {}


def test_a_group_is_its_mean_and_its_extremes_where_they_are(folder_panel: Panel) -> None:
    [frame] = folder_panel.shows("a", "b", grouped=True, log_y=False)
    x, mean, low, high = drawn(frame)["", "loss"]
    a = np.interp(x, range(6), LOSSES["a"])
    b = np.interp(x, range(2), LOSSES["b"], right=np.nan)
    np.testing.assert_allclose(mean, np.nanmean([a, b], axis=0), rtol=1e-5)
    np.testing.assert_allclose(low, np.fmin(a, b), rtol=1e-5)
    np.testing.assert_allclose(high, np.fmax(a, b), rtol=1e-5)
    message, _ = frame
    assert {line["n_runs"] for line in message["series"]} == {2}


def test_a_frame_is_sent_once_and_again_to_a_view_that_comes(folder_panel: Panel) -> None:
    [frame] = folder_panel.shows("a")
    assert folder_panel.shows("a") == []
    folder_panel.beside.forget()
    assert folder_panel.beside.frames()[0][0] == frame[0]
    assert folder_panel.shows() != [], "nothing is drawn any more"


@pytest.mark.slow
def test_a_run_that_grows_grows_in_the_panel(folder_panel: Panel) -> None:
    folder_panel.shows("b")
    with nbp.open_run(folder_panel.run("b"))._writing() as writer:
        writer.backfill("", "loss", [5], [0.125])
    [frame] = folder_panel.shows("b")
    np.testing.assert_array_equal(drawn(frame)["b", "loss"], [[0, 1, 5], [2, 1, 0.125]])


def test_a_record_that_is_gone_is_told_and_the_others_are_drawn(folder_panel: Panel) -> None:
    [frame] = folder_panel.shows("a", "gone")
    assert {run for run, _ in drawn(frame)} == {"a"}
    assert "no record at" in folder_panel.beside.problems[folder_panel.run("gone")]
