"""The panel for people who use a keyboard, a screen reader, high contrast or a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.access import findings
from tests.browser.panel_page import PanelPage
from tests.browser.panel_states import STATES

THEMES = ["light", "dark", "dark-high-contrast"]
DIALOGS = {
    "attached_list": "attached",
    "breakpoints": "breaks",
    "chart_options": "chart-options",
    "costs": "probes",
    "knobs": "knobs",
    "line_options": "line-options",
    "runs_list": "runs",
    "saved_views": "saved-views",
}
"""State to the button that opens its dialog."""
GROUND = "(node) => getComputedStyle(node).backgroundColor"


@pytest.fixture
def own(bare: PanelPage) -> Iterator[PanelPage]:
    """A page whose colors are given back after the test."""
    yield bare
    bare.page.emulate_media(forced_colors="none")


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_serious_in_any_theme(own: PanelPage, state: str) -> None:
    STATES[state](own, 1100)
    found: list[str] = []
    for theme in THEMES:
        own.dress(theme)
        found += [f"{theme}: {one}" for one in findings(own.page, ".nbp-panel")]
    own.page.emulate_media(forced_colors="active")
    found += [f"forced colors: {one}" for one in findings(own.page, ".nbp-panel")]
    assert found == []


@pytest.mark.slow
def test_axe_finds_a_button_without_a_name(own: PanelPage) -> None:
    STATES["empty"](own, 880)
    own.page.evaluate("document.querySelector('[data-action=undo]').removeAttribute('aria-label')")
    own.page.evaluate("document.querySelector('[data-action=undo]').removeAttribute('title')")
    own.page.evaluate("document.querySelector('[data-action=undo]').textContent = ''")
    assert [one for one in findings(own.page, ".nbp-panel") if "button-name" in one]


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 700, 1600, 2560])
@pytest.mark.parametrize("state", STATES)
def test_no_text_is_cut_off_at_any_width(bare: PanelPage, state: str, width: int) -> None:
    STATES[state](bare, width)
    bare.wait_frame()
    assert bare.cut() == []
    assert bare.root.evaluate("(node) => node.scrollWidth <= node.clientWidth")


def test_a_text_that_is_cut_off_is_found(bare: PanelPage) -> None:
    STATES["empty"](bare, 700)
    bare.page.evaluate(
        """() => { const word = document.querySelector(".nbp-no-alerts");
        Object.assign(word.style, { width: "20px", overflow: "hidden", whiteSpace: "nowrap" });
        word.replaceChildren("a long sentence"); }"""
    )
    assert bare.cut() == ["a long sentence"]


@pytest.mark.parametrize("state", DIALOGS)
def test_the_focus_is_in_a_dialog_and_back_at_its_button_after_escape(
    bare: PanelPage, state: str
) -> None:
    STATES[state](bare, 1100)
    dialog = bare.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert dialog.evaluate("(node) => node.contains(document.activeElement)")
    bare.page.keyboard.press("Tab")
    focused = "getComputedStyle(document.activeElement)"
    assert bare.page.evaluate(f"{focused}.outlineStyle") == "solid"
    assert bare.page.evaluate(f"parseFloat({focused}.outlineWidth)") >= 2
    bare.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(bare.action(DIALOGS[state]).first).to_be_focused()


def test_with_forced_colors_signs_keep_their_colors_and_what_is_chosen_stands_out(
    own: PanelPage,
) -> None:
    STATES["arranged"](own, 1100)
    swatch = "(chip) => getComputedStyle(chip.querySelector('.nbp-stroke')).backgroundColor"
    chips = own.page.locator(".nbp-chip.nbp-on")
    before = [chip.evaluate(swatch) for chip in chips.all()]
    assert len({*before}) == 3
    own.page.emulate_media(forced_colors="active")
    own.wait_frame()
    assert [chip.evaluate(swatch) for chip in chips.all()] == before
    chosen = own.page.locator(".nbp-quantities [aria-pressed=true]").first
    assert chosen.evaluate(GROUND) != own.action("new-chart").evaluate(GROUND)
    assert own.action("attach").evaluate(GROUND) != own.root.evaluate(GROUND)
    adjusts = "(node) => getComputedStyle(node).forcedColorAdjust"
    assert own.action("attach").evaluate(adjusts) == "none", "words without a plate behind them"
    own.picture("access-forced-colors")
