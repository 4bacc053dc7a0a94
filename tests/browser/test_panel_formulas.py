"""Formulas that are typed in the picker: completed, drawn, and why one has no value."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import lines_message, selection_message
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_arranged import drawn

ERROR = ("(root)", "= 1 - accuracy")


def typed(panel: PanelPage, text: str) -> Locator:
    """Type into the picker of series; its entries."""
    panel.action("add").click()
    panel.page.get_by_role("searchbox", name="Find a module or quantity").fill(text)
    return panel.page.locator(".nbp-head .nbp-item:visible")


def test_an_equals_sign_shows_examples_of_what_is_recorded(bare: PanelPage) -> None:
    panel = drawn(bare)
    entries = typed(panel, "=")
    names = ["= 1 - accuracy", "= running_min(loss)", "= mean(grad_norm)"]
    expect(entries.locator("span:first-child")).to_have_text(names)
    panel.picture("formula-examples")
    entries.nth(1).click()
    expect(panel.page.get_by_role("searchbox", name="Find a module or quantity")).to_have_value(
        "= running_min(loss)"
    )


def test_a_formula_is_drawn_as_it_was_typed(bare: PanelPage) -> None:
    panel = drawn(bare)
    typed(panel, "=1 - accuracy").first.click()
    assert panel.wait_sent("selection")["series"][-1] == list(ERROR)
    steps = np.arange(200)
    panel.draw(*lines_message({ERROR: (steps, 0.87 * np.exp(-steps / 40))}, seq=3))
    expect(panel.page.locator(".nbp-chip-text").last).to_have_text("= 1 - accuracy")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("=1 - acc", ["= 1 - accuracy"]),
        ("= mean(gr", ["= mean(grad_norm"]),
        ("= grad_norm@", ["= grad_norm@stem.conv1", "= grad_norm@block.conv2"]),
        ("= loss / grad_norm@bl", ["= loss / grad_norm@block.conv2"]),
        ("= loss", []),
    ],
)
def test_the_last_name_is_completed(bare: PanelPage, text: str, names: list[str]) -> None:
    panel = drawn(bare)
    entries = typed(panel, text)
    expect(entries.first).to_contain_text("draw this formula")
    expect(entries.locator("span:first-child")).to_have_text([f"= {text[1:].strip()}", *names])


def test_why_a_formula_has_no_value_is_below_the_charts(bare: PanelPage) -> None:
    panel = drawn(bare)
    wrong = ("(root)", "= 1 - acc")
    message, buffers = lines_message({wrong: ([], [])}, seq=3)
    why = "no series 'acc' is recorded; did you mean 'accuracy'?"
    message["series"][0]["problem"] = why
    panel.say(selection_message(series=[wrong]))
    panel.draw(message, buffers)
    told = panel.page.locator(".nbp-formula-problems")
    expect(told).to_have_text(f"= 1 - acc {why} remove")
    panel.picture("formula-problem")
    told.get_by_role("button", name="remove").click()
    expect(told).to_be_hidden()
    assert panel.wait_sent("selection")["series"] == []
