"""A view of one's own passes the suite; the suite finds faults in others."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import notebook_probe as nbp
from notebook_probe.explorer.draw.view import VIEWS, OwnView
from notebook_probe.testing import ViewSuite


def registered(draw: Callable[[Any, Any], object], esm: str = "") -> OwnView:
    """The function as a view that no panel of another test shows."""
    before = VIEWS._members
    VIEWS._members = dict(before)
    try:
        return nbp.view(draw.__name__, esm=esm)(draw)
    finally:
        VIEWS._members = before


def over_depth(source: Any, selection: Any) -> Figure:
    """The home quantity over depth, now."""
    figure = Figure(figsize=(6, 2.4))
    figure.subplots().plot(source.data[selection.home].isel(step=-1), "o-")
    return figure


def numbers(source: Any, selection: Any) -> dict[str, Any]:
    """The home quantity as it is."""
    return {"home": selection.home, "values": source.data[selection.home].values}


class TestFigure(ViewSuite):
    views = (registered(over_depth),)


class TestModule(ViewSuite):
    views = (registered(numbers, esm="export default { draw() {} }"),)


def unsaid(source: Any, selection: Any) -> Figure:
    return Figure()


def blank(source: Any, selection: Any) -> None:
    """Draws nothing."""


def picky(source: Any, selection: Any) -> Figure:
    """Of one quantity alone."""
    if selection.home != "grad_norm":
        raise KeyError(selection.home)
    return Figure()


def hasty(source: Any, selection: Any) -> Figure:
    """From one step to the next."""
    source.data.isel(step=1)
    return Figure()


def finite(source: Any, selection: Any) -> Figure:
    """Whole numbers."""
    for value in source.data[selection.home].values.ravel():
        if value == value:
            int(value)
    return Figure()


def writing(source: Any, selection: Any) -> Figure:
    """Keeps its scale in the record."""
    source.log(scale=2.0)
    return Figure()


def moody(source: Any, selection: Any, calls: list[int] = []) -> Figure:  # noqa: B006
    """Another size each time."""
    calls.append(1)
    return Figure(figsize=(6, 1 + len(calls)))


def at_home(source: Any, selection: Any) -> Figure:
    """In the main thread alone."""
    assert threading.current_thread() is threading.main_thread()
    return Figure()


def careless(source: Any, selection: Any) -> Figure:
    """A figure that is shown, and another that stays."""
    pyplot.figure()
    return Figure()


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("draw", "test", "error", "said"),
    [
        (unsaid, "it_says_what_it_shows", AssertionError, "unsaid has no docstring"),
        (blank, "it_draws_a_run", AssertionError, "blank draws nothing"),
        (picky, "it_draws_whatever_is_chosen", KeyError, "update_ratio"),
        (hasty, "it_draws_a_run_of_one_step", IndexError, "out of bounds"),
        (finite, "it_draws_numbers_that_are_not_finite", OverflowError, "infinity"),
        (writing, "it_changes_nothing_that_was_recorded", AssertionError, "writes into the record"),
        (moody, "it_shows_the_same_of_the_same", AssertionError, "moody depends on more"),
        (at_home, "it_is_drawn_in_a_thread_of_its_own", AssertionError, "outside the main thread"),
        (careless, "it_leaves_no_figure_open", AssertionError, "careless leaves figures open"),
    ],
)
def test_a_fault_is_found(
    draw: Callable[[Any, Any], object], test: str, error: type[Exception], said: str
) -> None:
    suite: Any = type("Given", (ViewSuite,), {"views": (registered(draw),)})()
    with pytest.raises(error, match=said):
        getattr(suite, f"test_{test}")()


def test_the_other_suites_do_not_need_the_packages_of_the_panel() -> None:
    code = (
        "import sys, notebook_probe.testing as t\n"
        "t.QuantitySuite, t.RuleSuite, t.ScheduleSuite\n"
        "print('ipywidgets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
