"""Saved views in the panel: saved under a name, shown by a click, removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.saved_views import ViewSettings
from tests.browser.panel_messages import selection_message
from tests.browser.panel_page import PanelPage, introduce

FILE = "runs/panel_views.json"
LONG = "attention logits of every block, over the last steps before it diverges"
GRADIENTS = ViewSettings("grad_norm", (("stem.conv1", "grad_norm"),), log_y=True, smooth=0.5)
WEIGHTS = ViewSettings("weight_norm", (("head.fc1", "weight_norm"),), y_limits=(0.0, 2.0))


def say_views(panel: PanelPage, views: Mapping[str, ViewSettings], problem: str = "") -> None:
    rows = [{"name": name, "shows": view.to_json()} for name, view in views.items()]
    message: dict[str, Any] = {"v": VERSION, "type": "saved_views", "rows": rows}
    panel.say({**message, "file": FILE, "problem": problem})


def opened(panel: PanelPage) -> Locator:
    panel.action("saved-views").click()
    return panel.page.get_by_role("dialog", name="Saved views")


def test_without_a_view_the_list_says_what_one_is(panel: PanelPage) -> None:
    expect(opened(panel)).to_contain_text("Quantity, lines and scales under a name")


def test_a_name_and_enter_save_what_is_looked_at(panel: PanelPage) -> None:
    dialog = opened(panel)
    dialog.get_by_label("Name of the view").fill("  my gradients ")
    dialog.get_by_label("Name of the view").press("Enter")
    asked = panel.wait_sent("edit_view")
    assert (asked["act"], asked["name"]) == ("save", "my gradients")
    say_views(panel, {"my gradients": GRADIENTS})
    expect(dialog.get_by_role("listitem")).to_contain_text(["my gradients"])
    expect(dialog.get_by_label("Name of the view")).to_have_value("")


def test_without_a_name_nothing_is_saved(panel: PanelPage) -> None:
    dialog = opened(panel)
    dialog.locator("[data-action=save-view]").click()
    expect(dialog.get_by_label("Name of the view")).to_be_focused()
    assert panel.sent("edit_view") == []


def test_a_click_shows_a_view_whole_and_marks_it(panel: PanelPage) -> None:
    say_views(panel, {"gradients": GRADIENTS, "weights": WEIGHTS})
    panel.say(selection_message(window=(3, 9)))
    dialog = opened(panel)
    dialog.get_by_text("weights", exact=True).click()
    chosen = panel.wait_sent("selection")
    assert (chosen["home"], chosen["series"]) == ("weight_norm", [["head.fc1", "weight_norm"]])
    assert (chosen["y_limits"], chosen["window"]) == ([0.0, 2.0], None)
    asked = panel.wait_sent("edit_view")
    assert (asked["act"], asked["name"]) == ("show", "weights")
    marked = dialog.locator("[data-on=true]")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("weights")


def test_a_cross_removes_a_view_and_a_problem_is_said(panel: PanelPage) -> None:
    say_views(panel, {"gradients": GRADIENTS})
    dialog = opened(panel)
    dialog.get_by_label("Remove the view gradients").click()
    assert panel.wait_sent("edit_view")["act"] == "remove"
    say_views(panel, {}, problem=f"{FILE} cannot be written: the folder is read-only")
    expect(dialog.get_by_role("alert")).to_contain_text("cannot be written")


@pytest.mark.parametrize(("width", "theme"), [(700, "light"), (1100, "dark")])
def test_the_list_fits_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = introduce(bare.show(width, theme))
    say_views(panel, {LONG: GRADIENTS, "weights": WEIGHTS})
    panel.say(selection_message(**GRADIENTS.to_json()))
    dialog = opened(panel)
    place, around = dialog.bounding_box(), panel.root.bounding_box()
    assert place is not None
    assert around is not None
    assert around["x"] <= place["x"]
    assert place["x"] + place["width"] <= around["x"] + around["width"]
    for node in dialog.locator("button, input").all():
        box = node.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= place["x"] + place["width"] - 8
    expect(dialog.locator("[data-on=true]")).to_have_count(1)
    panel.picture(f"saved-views-{width}-{theme}")
    assert panel.errors == []
