"""What a panel shows before anybody has chosen."""

from __future__ import annotations

import pytest

from notebook_probe.explorer.messages.defaults import Defaults, default_home, default_series
from notebook_probe.explorer.messages.selection import PanelSelection

PAIR = ["a", "b"]


@pytest.mark.parametrize(
    ("recorded", "home"),
    [
        ({"weight_norm": [*PAIR, "c"], "grad_norm": PAIR, "update_ratio": PAIR}, "update_ratio"),
        ({"output_std": PAIR, "grad_norm": PAIR}, "grad_norm"),
        ({"update_ratio": ["a"], "grad_norm": ["a"], "output_std": PAIR}, "output_std"),
        ({"grad_norm": ["a"], "mean": PAIR}, "mean"),
        ({"loss": ["(root)"], "calls": [*PAIR, "c"], "mean": ["a"]}, "mean"),
        ({"loss": ["(root)"], "calls": PAIR}, ""),
        ({}, ""),
    ],
)
def test_the_map_opens_with_what_compares_modules(
    recorded: dict[str, list[str]], home: str
) -> None:
    assert default_home(recorded, ["loss", "calls"]) == home


def test_the_loss_is_the_first_line_and_the_rate_is_none() -> None:
    names = ["lr", "train/loss", "accuracy", "loss"]
    assert [name for _, name in default_series(names)] == ["loss", "train/loss", "accuracy"]


def filled(defaults: Defaults, selection: PanelSelection, *logged: str) -> PanelSelection:
    return defaults.fill(selection, {name: ["(root)"] for name in logged}, logged, ())


def names(selection: PanelSelection) -> list[str]:
    return [name for _, name in selection.series]


def test_there_are_three_lines_at_most_and_each_is_offered_once() -> None:
    defaults = Defaults()
    shown = filled(defaults, PanelSelection(), "a", "loss")
    assert names(shown) == ["loss", "a"]
    shown = filled(defaults, shown, "a", "loss", "b", "c")
    assert names(shown) == ["loss", "a", "b"]
    fewer = shown.without(("(root)", "a"))
    assert names(filled(defaults, fewer, "a", "loss", "b", "c", "d")) == ["loss", "b"]


def test_who_chooses_lines_is_offered_no_more() -> None:
    defaults, before = Defaults(), PanelSelection()
    after = before.with_series(("a", "norm"))
    defaults.chosen(before, after)
    assert filled(defaults, after, "loss") == after
    assert not defaults.lines_are_open


def test_a_quantity_that_was_chosen_stays() -> None:
    defaults, before = Defaults(), PanelSelection()
    after = PanelSelection(home="mean")
    defaults.chosen(before, after)
    assert defaults.fill(after, {"grad_norm": PAIR}, (), ()).home == "mean"
