"""Colors that a user chose for series, and the automatic ones of all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.draw.lines.decoded import source_of

A, B, C = ("a", "norm"), ("b", "norm"), ("c", "norm")
BOTH = PanelSelection().with_series(A, B)


def choosing(selection: PanelSelection, *chosen: tuple[str, str, int]) -> PanelSelection:
    """The selection after a view chose colors."""
    return selection.chosen({**selection.message(), "chosen_colors": list(chosen)})


def test_a_chosen_color_is_drawn_and_the_automatic_one_is_back_without_the_choice() -> None:
    chosen = choosing(BOTH, (*A, 4))
    assert (chosen.colour(A), chosen.colour(B)) == (4, 1)
    frame, _ = Lines().frame(source_of(np.ones((3, 2))), chosen, 100)
    assert [one["colour"] for one in frame["series"]] == [4, 1]
    assert choosing(chosen).colour(A) == 0
    assert chosen.message()["chosen_colors"] == [(*A, 4)]


def test_the_last_choice_of_a_series_counts_and_only_colors_of_the_palette() -> None:
    chosen = choosing(BOTH, (*A, 4), (*B, 28), (*B, -1), (*A, 20))
    assert chosen.chosen_colors == ((*A, 20),)
    assert chosen.colour(B) == 1


def test_a_new_series_avoids_a_chosen_color_while_others_are_free() -> None:
    assert choosing(BOTH, (*A, 2)).with_series(C).colour(C) == 3


@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 27)), max_size=12),
    st.integers(1, 12),
)
def test_every_series_has_a_color_whatever_is_chosen(
    picked: list[tuple[int, int]], n_series: int
) -> None:
    chosen = tuple((str(number), "norm", index) for number, index in picked)
    selection = choosing(BOTH, *chosen)
    series = [(str(number), "norm") for number in range(n_series)]
    for one in series:
        selection = selection.with_series(one)
    last = {(module, quantity): index for module, quantity, index in chosen}
    for one in series:
        assert selection.colour(one) == last.get(one, selection.colours[one])
    automatic = [selection.colours[one] for one in series]
    assert len({*automatic}) == len(automatic)
    withdrawn = replace(selection, chosen_colors=())
    assert [withdrawn.colour(one) for one in series] == automatic
