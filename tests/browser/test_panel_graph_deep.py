"""The graph of a deep network: words that can be read at any size, and an overview of the rest."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.graph_messages import (
    Drawing,
    box,
    boxes,
    deep_graph,
    gpt2,
    resnet18,
    show_graph,
)
from tests.browser.panel_page import PanelPage

LEAST_PX = 10
WORDS = """(boxes) => boxes.flatMap((box) => [...box.querySelectorAll("span")])
  .filter((word) => word.textContent && word.checkVisibility())
  .map((word) => ({
    px: parseFloat(getComputedStyle(word).fontSize)
      * word.getBoundingClientRect().height / word.offsetHeight,
    isCut: word.scrollWidth > word.clientWidth + 1 && getComputedStyle(word).overflowX === "hidden",
    isInside: word.parentNode.clientHeight >= parseFloat(getComputedStyle(word).fontSize) * 0.9,
  }))"""
PAINTED = """([canvas, [x, y]]) => {
  const ratio = canvas.width / canvas.clientWidth;
  return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data].slice(0, 3);
}"""


def overview(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-graph-overview")


def is_seen(panel: PanelPage, module: str) -> bool:
    """Return whether a box can be seen inside the plane."""
    if not box(panel, module).count():
        return False
    plane = panel.page.locator(".nbp-graph-plane").bounding_box()
    found = box(panel, module).bounding_box()
    assert plane is not None
    assert found is not None
    top, bottom = plane["y"] - 1, plane["y"] + plane["height"] + 1
    return top <= found["y"] and found["y"] + found["height"] <= bottom


@pytest.mark.parametrize("width", [640, 1100])
def test_words_of_a_deep_network_are_whole_and_at_least_ten_pixels_high(
    bare: PanelPage, width: int
) -> None:
    panel = show_graph(bare, gpt2(24), width)
    words = boxes(panel).evaluate_all(WORDS)
    assert len(words) > 15
    assert min(word["px"] for word in words) >= LEAST_PX
    assert not any(word["isCut"] for word in words)


def test_words_keep_their_size_while_the_graph_is_made_smaller_or_are_left_out(
    bare: PanelPage,
) -> None:
    panel = show_graph(bare, gpt2(24), 1100)
    for _ in range(6):
        panel.action("graph-smaller").click()
        panel.wait_frame()
        words = boxes(panel).evaluate_all(WORDS)
        assert all(word["px"] >= LEAST_PX for word in words)
        assert all(word["isInside"] for word in words)
    assert words == []
    box(panel, "transformer.h.4").hover()
    expect(panel.page.locator(".nbp-graph-tip")).to_contain_text("transformer.h.4  GPT2Block")


def test_an_overview_leads_to_what_is_out_of_sight(bare: PanelPage) -> None:
    panel = show_graph(bare, gpt2(24), 880)
    assert is_seen(panel, "transformer.h.0")
    assert not is_seen(panel, "lm_head")
    place = overview(panel).locator("canvas").bounding_box()
    assert place is not None
    panel.page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] - 2)
    panel.wait_frame()
    assert is_seen(panel, "lm_head")
    panel.page.mouse.move(place["x"] + 5, place["y"] + place["height"] - 2)
    panel.page.mouse.down()
    panel.page.mouse.move(place["x"] + 5, place["y"] + 60, steps=4)
    panel.page.mouse.up()
    panel.wait_frame()
    assert not is_seen(panel, "lm_head")
    sight = overview(panel).locator(".nbp-graph-sight").bounding_box()
    assert sight is not None
    assert sight["y"] <= place["y"] + 60 <= sight["y"] + sight["height"]
    assert panel.errors == []


def test_a_graph_that_is_seen_as_a_whole_has_no_overview(bare: PanelPage) -> None:
    panel = show_graph(bare, resnet18(), 880)
    expect(overview(panel)).to_be_hidden()
    for _ in range(3):
        panel.action("graph-larger").click()
    expect(overview(panel)).to_be_visible()
    panel.action("graph-fit").click()
    expect(overview(panel)).to_be_hidden()


def test_the_overview_has_the_colors_of_the_boxes_at_the_cursor(bare: PanelPage) -> None:
    net = Drawing("Stack")
    x = net.node("x", "", kind="input")
    for k in range(30):
        x = net.layer(f"layer{k}", "Linear", "linear", x, [2], 7)
    cells = np.geomspace(1e-3, 1, 60).reshape(30, 2)
    panel = show_graph(bare, net.graph, 880, cells=cells)
    for step in (0, 1):
        panel.say({"v": 1, "type": "pointed", "step": step})
        panel.wait_frame()
        for k in (0, 3):
            one = box(panel, f"layer{k}")
            shown = one.evaluate("(one) => getComputedStyle(one).backgroundColor")
            assert shown == f"rgb({', '.join(map(str, painted(panel, k + 1, 31)))})"


def painted(panel: PanelPage, k: int, n: int) -> list[int]:
    """Return the color of the `k`-th of `n` boxes below each other in the overview."""
    canvas = overview(panel).locator("canvas")
    place = canvas.bounding_box()
    assert place is not None
    [first, rest] = [18, 22]  # the input is lower than a module
    height = first + (n - 1) * (rest + 20)
    y = place["height"] / height * (first + 20 + (k - 1) * (rest + 20) + rest / 2)
    found: list[int] = canvas.evaluate(
        "(canvas, at) => (" + PAINTED + ")([canvas, at])", [place["width"] / 2, y]
    )
    return found


def test_a_thousand_boxes_are_all_in_the_overview(bare: PanelPage) -> None:
    panel = show_graph(bare, deep_graph(1000, 2))
    box(panel, "layers").locator(".nbp-graph-fold").click()
    panel.wait_frame()
    expect(overview(panel)).to_be_visible()
    rows = (
        overview(panel)
        .locator("canvas")
        .evaluate(
            """(canvas) => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(width / 2, 0, 1, height);
          return Array.from({ length: height }, (_, k) => data[4 * k + 3]);
        }"""
        )
    )
    assert np.mean(np.array(rows) > 0) > 0.9
    assert boxes(panel).count() < 60
