"""A user's own widgets: which comms are carried, until when, and what is refused."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest

import notebook_probe as nbp
from notebook_probe.errors import ParamError
from notebook_probe.explorer import live_widgets


class Route:
    """Keeps which comms it carries."""

    def __init__(self, name: str = "own subshell") -> None:
        self.name = name
        self.carried: set[str] = set()

    def carry(self, comm: Any) -> None:
        self.carried.add(comm.comm_id)

    def forget(self, comm: Any) -> None:
        self.carried.discard(comm.comm_id)


@pytest.fixture
def route(monkeypatch: pytest.MonkeyPatch) -> Route:
    made = Route()
    monkeypatch.setattr(live_widgets, "kernel_route", lambda: made)
    return made


def test_a_widget_is_returned_and_carried(route: Route) -> None:
    slider = ipywidgets.IntSlider()
    assert nbp.live(slider) is slider
    assert slider.comm.comm_id in route.carried


def test_so_are_the_widgets_inside_it_however_deep(route: Route) -> None:
    inner, other = ipywidgets.IntSlider(), ipywidgets.IntSlider()
    nbp.live(ipywidgets.VBox([ipywidgets.HBox([inner]), ipywidgets.Tab([ipywidgets.Text()])]))
    assert inner.comm.comm_id in route.carried
    assert other.comm.comm_id not in route.carried


def test_a_widget_that_contains_itself_is_carried_once(route: Route) -> None:
    box = ipywidgets.VBox()
    box.children = [box]
    nbp.live(box)
    assert box.comm.comm_id in route.carried


def test_a_closed_widget_is_carried_no_more(route: Route) -> None:
    slider = nbp.live(nbp.live(ipywidgets.IntSlider()))
    comm_id = slider.comm.comm_id
    slider.close()
    assert comm_id not in route.carried


def test_in_a_script_nothing_happens() -> None:
    slider = ipywidgets.IntSlider()
    assert nbp.live(slider) is slider


def test_where_no_message_arrives_during_a_cell_one_line_says_so(
    route: Route, capsys: pytest.CaptureFixture[str]
) -> None:
    route.name = "after the cell"
    nbp.live(ipywidgets.IntSlider())
    assert "only after the running cell" in capsys.readouterr().out


@pytest.mark.parametrize("given", [None, 3, "slider", [ipywidgets.IntSlider], ipywidgets.IntSlider])
def test_anything_else_is_refused_with_what_is_allowed(given: Any) -> None:
    with pytest.raises(ParamError, match="allowed is a widget of ipywidgets"):
        nbp.live(given)


def test_a_closed_widget_is_refused() -> None:
    slider = ipywidgets.IntSlider()
    slider.close()
    with pytest.raises(ParamError, match="closed"):
        nbp.live(slider)
