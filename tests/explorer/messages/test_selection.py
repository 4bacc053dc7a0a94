"""Colors stay with their series; a view's wish becomes a selection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import SelectionMessage

SERIES = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["norm", "mean"]))


def asked(selection: PanelSelection, *series: tuple[str, str]) -> SelectionMessage:
    message = selection.message()
    message["series"] = list(series)
    return message


@pytest.mark.slow
@given(st.lists(st.lists(SERIES, max_size=10), max_size=8))
def test_a_series_keeps_its_colour_as_long_as_it_is_drawn(
    wishes: list[list[tuple[str, str]]],
) -> None:
    selection = PanelSelection()
    for wish in wishes:
        before = selection
        selection = selection.chosen(asked(selection, *wish))
        for series in set(before.series) & set(selection.series):
            assert selection.colour(series) == before.colour(series)


@given(st.lists(SERIES, max_size=12))
def test_no_two_drawn_series_share_a_colour(wish: list[tuple[str, str]]) -> None:
    selection = PanelSelection().with_series(*wish)
    given_out = [selection.colour(series) for series in selection.series]
    assert sorted(given_out) == list(range(len(given_out)))


def test_a_series_that_comes_back_has_its_old_colour_while_colours_are_free() -> None:
    a, b, c = ("a", "norm"), ("b", "norm"), ("c", "norm")
    selection = PanelSelection().with_series(a, b).without(a).with_series(c).with_series(a)
    assert [selection.colour(series) for series in (a, b, c)] == [0, 1, 2]


def test_when_all_colours_were_given_a_new_series_takes_one_that_left_the_screen() -> None:
    seven = [(name, "norm") for name in "abcdefg"]
    selection = PanelSelection().with_series(*seven).without(seven[3]).with_series(("new", "norm"))
    assert selection.colour(("new", "norm")) == 3


def test_a_wish_is_kept_within_bounds() -> None:
    message = PanelSelection(home="norm").message()
    message["smooth"], message["window"], message["home"] = 7.0, (5.0, 5.0), ""
    chosen = PanelSelection(home="norm").chosen(message)
    assert (chosen.smooth, chosen.window, chosen.home) == (0.999, None, "norm")


def test_what_a_view_is_told_it_can_ask_for_again() -> None:
    selection = PanelSelection(home="norm", window=(3.0, 9.0), smooth=0.5).with_series(
        ("a", "norm")
    )
    assert selection.chosen(selection.message()) == selection
