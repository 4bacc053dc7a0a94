"""The site in a browser: legible, reached by keys, narrow enough, and asking nobody else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.site.conftest import Visit

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.docs, pytest.mark.xdist_group("browser")]

Window = Callable[[int, str], AbstractContextManager[Visit]]

PAGES = [
    "",
    "tutorial/",
    "quantities/ranks/",
    "reference/api/watching/",
    "how_to/comparing/",
    "broken/dying_relu/",
]

LEGIBLE = 4.5
CONTRASTS = """
() => {
  const parse = (css) => {
    const [r, g, b, a = 1] = css.match(/[\\d.]+/g).map(Number);
    return css.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement)
      layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const luminance = (rgb) => rgb
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = {};
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), element = walk.currentNode.parentElement;
    if (!text || element.closest("script, style, noscript, svg")) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const below = ground(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    const [r, g, b, a] = parse(getComputedStyle(element).color);
    const [one, two] = [luminance(over([r, g, b, a * opacity], below)), luminance(below)];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const kind = `${element.tagName}.${element.className}`;
    if (!(kind in found) || found[kind][0] > ratio) found[kind] = [ratio, text.slice(0, 40)];
  }
  return found;
}
"""
FOCUSED = """
() => {
  const at = document.activeElement;  // of a choice of colours the label is what is seen
  const seen = at.matches(".md-option") ? at.nextElementSibling : at;
  const style = getComputedStyle(seen), box = seen.getBoundingClientRect();
  return {
    what: `${at.tagName}.${at.className}`,
    href: at.getAttribute("href") ?? "",
    marked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
    inSight: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
  };
}
"""

CUT_OFF = """
() => [...document.querySelectorAll(".md-content .highlight:not(.language-text) > pre > code")]
  .filter((code) => code.scrollWidth > code.clientWidth)
  .map((code) => code.textContent.slice(0, 80))
"""
AS_HIGH_AS_ITS_PANEL = """
() => {
  const frame = document.querySelector("iframe.panel"), shown = frame.contentDocument;
  const whole = shown.querySelector(".nbp-foot")?.getBoundingClientRect().bottom;
  return whole <= frame.clientHeight && shown.documentElement.scrollHeight <= frame.clientHeight;
}
"""
GOING_ON_BELOW = """
() => [...document.querySelectorAll(".md-content pre > code > span")]
  .filter((line) => line.offsetHeight > 1.5 * parseFloat(getComputedStyle(line).lineHeight))
  .map((line) => line.textContent)
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_every_text_stands_out_from_its_ground(window: Window, path: str, scheme: str) -> None:
    with window(1280, scheme) as visit:
        found = visit(path).evaluate(CONTRASTS)
    assert len(found) > 10
    assert {kind: one for kind, one in found.items() if one[0] < LEGIBLE} == {}


def test_light_and_dark_are_those_of_the_reader(window: Window) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        with window(1280, scheme) as visit:
            grounds.append(visit("").evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


@pytest.mark.parametrize("width", [320, 880])
def test_a_narrow_page_does_not_scroll_sideways(window: Window, width: int) -> None:
    with window(width, "light") as visit:
        widths = {path: visit(path).evaluate("document.body.scrollWidth") for path in PAGES}
    assert {path: wide for path, wide in widths.items() if wide > width} == {}


@pytest.mark.parametrize("width", [320, 880, 1280])
def test_no_line_of_code_is_cut_off(window: Window, width: int) -> None:
    with window(width, "light") as visit:
        cut = {path: visit(path).evaluate(CUT_OFF) for path in PAGES}
    assert {path: codes for path, codes in cut.items() if codes} == {}


def test_in_a_usual_window_every_line_of_the_tutorial_is_one(window: Window) -> None:
    with window(1280, "light") as visit:
        assert visit("tutorial/").evaluate(GOING_ON_BELOW) == []


def test_code_that_is_copied_is_what_was_written(window: Window) -> None:
    with window(320, "light") as visit:
        page = visit("tutorial/")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator(".highlight").first.hover()
        page.locator(".highlight .md-code__button").first.click()
        page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
        copied = page.evaluate("navigator.clipboard.readText()")
    written = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert copied == written.split("```python\n")[1].split("\n```")[0]


def test_keys_reach_the_search_and_the_nav_and_show_where_they_are(window: Window) -> None:
    with window(1280, "light") as visit:
        page = visit("tutorial/")
        reached = []
        for _ in range(16):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(FOCUSED))
    assert [one for one in reached if not one["marked"] or not one["inSight"]] == []
    assert any(one["what"].startswith("INPUT.md-search__input") for one in reached)
    assert any(one["what"].startswith("A.md-tabs__link") for one in reached)
    assert any(one["what"].startswith("A.md-nav__link") for one in reached)


def test_a_quantity_is_found_by_a_part_of_its_name(window: Window) -> None:
    with window(1280, "light") as visit:
        page = visit("")
        page.keyboard.press("/")
        page.keyboard.type("effective_rank")
        results = page.locator(".md-search-result__link[href*='quantities/ranks/']")
        expect(results.first).to_be_attached()


def test_the_panel_on_the_first_page_is_alive_without_a_kernel(window: Window) -> None:
    with window(1280, "light") as visit:
        page = visit("")
        page.locator("iframe.panel").scroll_into_view_if_needed()
        panel = page.frame_locator("iframe.panel")
        chip = panel.locator("[data-quantity=weight_norm][aria-pressed]").first
        chip.click()
        expect(chip).to_have_attribute("aria-pressed", "true")
        expect(panel.get_by_role("img", name="Modules over steps")).to_be_visible()


@pytest.mark.parametrize("width", [320, 880, 1280])
def test_the_panel_on_the_first_page_is_whole(window: Window, width: int) -> None:
    with window(width, "light") as visit:
        page = visit("")
        page.locator("iframe.panel").scroll_into_view_if_needed()
        foot = page.frame_locator("iframe.panel").locator(".nbp-foot")
        expect(foot).to_be_visible()
        page.wait_for_function(AS_HIGH_AS_ITS_PANEL)
        bar = page.frame_locator("iframe.panel").locator(".nbp-bar")
        assert bar.evaluate("(bar) => bar.scrollWidth - bar.clientWidth") <= 0
