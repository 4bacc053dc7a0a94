"""The Explorer among other widgets: what its traits say, and what they are set to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest
import traitlets

from notebook_probe.alerts import Alert
from notebook_probe.errors import UnknownNameError
from notebook_probe.explorer import Explorer, Panel
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream


@pytest.fixture
def recorded_panel() -> Iterator[Panel]:
    stream = FakeStream("every_1", ["fc1", "fc2"], ["grad_norm", "weight_norm"])
    stream.append(range(20), grad_norm=1.0, weight_norm=2.0)
    with Panel(FakeSource(stream), FakeControls()) as panel:
        yield panel


class Noted:
    """Values that a trait has had; waits for one."""

    def __init__(self, explorer: Explorer, name: str) -> None:
        self.values: list[Any] = []
        self._news = threading.Condition()
        explorer.observe(self._note, names=name)

    def _note(self, change: Any) -> None:
        with self._news:
            self.values.append(change.new)
            self._news.notify_all()

    def waits_for(self, value: object) -> None:
        with self._news:
            assert self._news.wait_for(lambda: value in self.values, timeout=60), self.values


def clicks(explorer: Explorer, **chosen: Any) -> None:
    """A view chooses something."""
    selection = {
        "v": 1,
        "type": "selection",
        "home": "grad_norm",
        "series": [],
        "window": None,
        "log_heat": True,
        "cells": "max",
        "log_y": True,
        "y_limits": None,
        "outliers": False,
        "charts": [],
        "log_x": False,
        "smooth": 0.5,
        "x_axis": "step",
        "rows": [],
        "folds": [],
        "others": [],
        "ratio_to": "",
        "aligned": "step",
        "apart": (2.0, 10),
        "grouped": False,
        "chosen_colors": [],
    }
    explorer._handle_custom_msg(selection | chosen, [])


def test_what_is_chosen_in_the_panel_arrives_at_the_traits(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    noted = {name: Noted(explorer, name) for name in ("home", "series", "window")}
    clicks(explorer, home="weight_norm", series=[["fc1", "weight_norm"]], window=[3, 9])
    noted["home"].waits_for("weight_norm")
    noted["series"].waits_for((("fc1", "weight_norm"),))
    noted["window"].waits_for((3.0, 9.0))


def test_what_a_trait_is_set_to_is_what_the_panel_shows(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    explorer.home = "weight_norm"
    explorer.series = [("fc2", "grad_norm")]
    explorer.window = (2, 7)
    explorer.step = 5
    looked_at = recorded_panel._session.look()
    assert (looked_at.home, looked_at.series) == ("weight_norm", (("fc2", "grad_norm"),))
    assert looked_at.window == (2.0, 7.0)
    assert recorded_panel._session.looked_at["step"] == 5


def test_rows_and_folds_of_the_heat_map_are_traits_too(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    explorer.rows = ["fc2", "fc2"]
    explorer.folds = ["fc1"]
    looked_at = recorded_panel._session.look()
    assert (looked_at.rows, looked_at.folds) == (("fc2",), ("fc1",))
    noted = Noted(explorer, "rows")
    clicks(explorer, rows=["fc1"], folds=[])
    noted.waits_for(("fc1",))


def test_the_whole_model_is_written_as_everywhere_and_may_be_of_what_is_logged_later(
    recorded_panel: Panel,
) -> None:
    recorded_panel.explorer.series = [("", "loss"), ("", "los")]
    assert recorded_panel._session.look().series == (("(root)", "loss"), ("(root)", "los"))
    assert recorded_panel.explorer.series == (("(root)", "loss"), ("(root)", "los"))
    recorded_panel._session._source.finished = True  # type: ignore[misc]
    with pytest.raises(UnknownNameError, match="no quantity 'accuracy' here"):
        recorded_panel.explorer.series = [("", "accuracy")]


def test_a_trait_that_was_set_is_not_set_back_by_a_refresh_that_was_under_way(
    recorded_panel: Panel,
) -> None:
    explorer = recorded_panel.explorer
    clicks(explorer, home="grad_norm")
    recorded_panel.refresh()
    before = recorded_panel._session.looked_at
    explorer.home = "weight_norm"
    explorer.follow(**before)
    assert explorer.home == "weight_norm"
    explorer.home = "grad_norm"
    assert recorded_panel._session.looked_at["home"] == "grad_norm"


def test_the_step_under_the_pointer_is_a_trait(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    noted = Noted(explorer, "step")
    explorer._handle_custom_msg({"v": 1, "type": "pointed", "step": 7}, [])
    noted.waits_for(7)


def test_two_widgets_can_be_linked_through_a_trait(recorded_panel: Panel) -> None:
    explorer, at = recorded_panel.explorer, ipywidgets.IntSlider(max=19)
    ipywidgets.link((explorer, "step"), (at, "value"))
    at.value = 4
    assert explorer.step == 4
    noted = Noted(explorer, "step")
    explorer._handle_custom_msg({"v": 1, "type": "pointed", "step": 11}, [])
    noted.waits_for(11)
    assert at.value == 11
    at.layout.close()
    at.style.close()
    at.close()


def test_the_explorer_stands_among_other_widgets(recorded_panel: Panel) -> None:
    box = ipywidgets.VBox([recorded_panel.explorer])
    assert box.children == (recorded_panel.explorer,)
    box.layout.close()
    box.close()


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("home", "grad_nrm", UnknownNameError, "no quantity 'grad_nrm' here; close: 'grad_norm'"),
        ("series", [("fc3", "grad_norm")], UnknownNameError, "no module 'fc3' here; close: 'fc2'"),
        ("series", [("fc1", "nrm")], UnknownNameError, "no quantity 'nrm' here"),
        ("rows", ["fc3"], UnknownNameError, "no module 'fc3' here; close: 'fc2'"),
        ("folds", ["block"], UnknownNameError, "no module 'block' here"),
        ("window", (9, 3), ValueError, "first below last"),
        ("step", -1, ValueError, "a whole number from 0"),
        ("step", "seven", traitlets.TraitError, "step"),
        ("series", ["fc1"], traitlets.TraitError, "series"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_and_changes_nothing(
    recorded_panel: Panel, name: str, value: object, error: type[Exception], text: str
) -> None:
    explorer = recorded_panel.explorer
    before = recorded_panel._session.looked_at
    with pytest.raises(error, match=text):
        setattr(explorer, name, value)
    assert getattr(explorer, name) == explorer.trait_defaults(name)
    assert recorded_panel._session.looked_at == before


def test_an_observer_that_fails_is_a_line_in_the_panel_and_the_panel_goes_on(
    recorded_panel: Panel,
) -> None:
    explorer = recorded_panel.explorer

    def fails(change: Any) -> None:
        raise RuntimeError("no plot")

    explorer.observe(fails, names="home")
    noted = Noted(explorer, "step")
    clicks(explorer, home="weight_norm")
    explorer._handle_custom_msg({"v": 1, "type": "pointed", "step": 3}, [])
    noted.waits_for(3)
    assert "no plot" in str(recorded_panel._session._problems.rows())


def test_a_closed_explorer_can_still_be_read_and_set(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    explorer.close()
    assert explorer.closed
    explorer.step = 3
    assert repr(explorer) == "<Explorer of 'fake', closed>"
    assert recorded_panel.explorer is not explorer


def test_an_alert_is_shown_by_the_traits(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    explorer.series = (("fc2", "weight_norm"),)
    explorer.home = "weight_norm"
    explorer.window = (0.0, 4.0)
    noted = Noted(explorer, "series")
    alert = Alert("lr_low", 12, "fc1: hardly moves", ("gone", "fc1"), ("no_more", "grad_norm"))
    explorer.show_alert(alert)
    assert explorer.home == "grad_norm"
    noted.waits_for((("fc2", "weight_norm"), ("fc1", "grad_norm")))
    assert (explorer.window, explorer.step) == ((10.0, 14.0), 12)


def test_an_alert_within_the_window_leaves_it_and_what_one_module_has_leaves_the_home(
    recorded_panel: Panel,
) -> None:
    explorer = recorded_panel.explorer
    explorer.home = "weight_norm"
    explorer.window = (0.0, 15.0)
    logged = FakeStream("log", ["(root)"], ["loss"])
    logged.append(range(20), loss=1.0)
    norms = FakeStream("every_1", ["a", "b"], ["grad_norm"])
    norms.append(range(20), grad_norm=1.0)
    with Panel(FakeSource(logged, norms), FakeControls()) as other:
        other.explorer.show_alert(Alert("loss_spike", 3, "high", ("(root)",), ("loss",)))
        assert other.explorer.home == "grad_norm"
        assert other.explorer.window is None
    explorer.show_alert(Alert("lr_low", 12, "low", ("fc1",), ("grad_norm",)))
    assert explorer.window == (0.0, 15.0)


def test_an_alert_of_which_nothing_is_recorded_any_more_is_not_shown(recorded_panel: Panel) -> None:
    explorer = recorded_panel.explorer
    with pytest.raises(UnknownNameError, match=r"grad_rms: not recorded any more where low_grad"):
        explorer.show_alert(Alert("low_grad", 12, "low", ("fc1",), ("grad_rms",)))
