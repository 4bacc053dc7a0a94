"""The graph in the place of the heat map: boxes, folds, colours, selection both ways, keys."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser import panel_messages as kernel
from tests.browser.graph_messages import (
    Drawing,
    box,
    boxes,
    deep_graph,
    gpt2,
    resnet18,
    show_graph,
    table_of,
    tell,
    weighted,
)
from tests.browser.panel_page import PanelPage, introduce


def shown(bare: PanelPage) -> PanelPage:
    return show_graph(bare, resnet18())


def camera(panel: PanelPage) -> dict[str, float]:
    panel.wait_frame()
    found: dict[str, float] = json.loads(
        panel.page.locator(".nbp-graph-plane").get_attribute("data-camera") or ""
    )
    return found


def colour(panel: PanelPage, module: str) -> tuple[int, ...]:
    found = box(panel, module).evaluate("(node) => getComputedStyle(node).backgroundColor")
    return tuple(int(part) for part in re.findall(r"\d+", found)[:3])


def cell_colour(panel: PanelPage, module: str, step: int) -> tuple[int, ...]:
    """As the heat map paints it."""
    rows = weighted(resnet18())
    _, top, _, bottom = json.loads(panel.heat.get_attribute("data-box") or "")
    y = top + (rows.index(module) + 0.5) * (bottom - top) / len(rows)
    return panel.pixel(panel.heat, panel.x_of_step(panel.heat, step + 0.5), y)[:3]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [640, 880, 1280])
def test_resnet18_opens_as_ten_modules_in_the_place_of_the_heat_map(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = show_graph(bare, resnet18(), width, theme)
    expect(panel.page.locator('.nbp-graph-box[data-kind="module"]')).to_have_count(10)
    expect(panel.heat).to_be_hidden()
    expect(panel.lines).to_be_visible()
    panel.picture(f"graph-{width}-{theme}")
    box(panel, "layer2").dblclick()
    box(panel, "layer2.0").dblclick()
    expect(box(panel, "layer2.0.relu")).to_have_count(2)
    panel.picture(f"graph-open-{width}-{theme}")
    assert panel.errors == []
    assert panel.root.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    panel.action("graph").click()
    expect(panel.heat).to_be_visible()


def test_a_transformer_opens_with_its_blocks(bare: PanelPage) -> None:
    panel = show_graph(bare, gpt2(), 880, "dark")
    expect(box(panel, "transformer.h")).to_have_attribute("aria-expanded", "true")
    expect(box(panel, "transformer.h.3")).to_have_attribute("aria-expanded", "false")
    panel.picture("graph-gpt2")


def test_a_module_opens_by_a_double_click_its_mark_and_enter(panel: PanelPage) -> None:
    layer = box(panel, "layer1")
    before = layer.bounding_box()
    layer.dblclick()
    expect(box(panel, "layer1.1")).to_be_visible()
    after = layer.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 6, "what was clicked stays where it is"
    layer.locator(".nbp-graph-fold").click()
    expect(box(panel, "layer1.1")).to_have_count(0)
    layer.focus()
    panel.page.keyboard.press("Enter")
    expect(box(panel, "layer1.0")).to_be_visible()
    expect(layer).to_be_focused()
    panel.page.keyboard.press("Enter")
    expect(box(panel, "layer1.0")).to_have_count(0)


def test_a_box_has_the_colour_of_its_cell_at_the_cursor_or_the_newest(panel: PanelPage) -> None:
    assert colour(panel, "conv1") == cell_colour(panel, "conv1", 59)
    panel.say({"v": 1, "type": "pointed", "step": 7})
    panel.wait_frame()
    for module in ("conv1", "bn1", "fc"):
        assert colour(panel, module) == cell_colour(panel, module, 7)
    expect(panel.page.locator(".nbp-graph-when")).to_have_text("grad_norm, step 7")
    expect(box(panel, "maxpool")).not_to_have_class(re.compile("nbp-coloured"))


def test_a_closed_box_shows_the_largest_of_what_is_inside_or_the_mean(bare: PanelPage) -> None:
    rows = weighted(resnet18())
    inside = [k for k, path in enumerate(rows) if path.startswith("layer3.")]
    cells = np.geomspace(0.01, 1, len(rows) * 4).reshape(len(rows), 4)
    panel = show_graph(bare, resnet18(), cells=cells)
    box(panel, "layer3").hover()
    tip = panel.page.locator(".nbp-graph-tip")
    largest = float(np.float32(cells[inside, -1].max()))
    expect(tip).to_contain_text(f"the largest of {len(inside)} inside")
    assert shown_value(tip.inner_text()) == pytest.approx(largest, rel=1e-5)
    panel.say(kernel.selection_message(cells="mean"))
    expect(tip).to_contain_text(f"the mean of {len(inside)} inside")
    mean = float(cells[inside, -1].mean())
    assert shown_value(tip.inner_text()) == pytest.approx(mean, rel=1e-5)


def shown_value(text: str) -> float:
    [found] = re.findall(r"grad_norm ([\d.]+)", text)
    return float(found)


def test_what_was_not_measured_then_is_as_it_was_last_before_and_nan_is_marked(
    bare: PanelPage,
) -> None:
    graph = resnet18()
    rows = weighted(graph)
    cells = np.full((len(rows), 10), 0.5)
    unmeasured = np.zeros_like(cells, dtype=bool)
    unmeasured[:, 1:5] = True
    unmeasured[rows.index("fc")] = True
    cells[rows.index("layer4.1.conv2"), 5:] = np.nan
    panel = show_graph(bare, graph)
    panel.draw(*kernel.heat_message(cells, rows, seq=2, unmeasured=unmeasured))
    panel.say({"v": 1, "type": "pointed", "step": 3})
    box(panel, "conv1").hover()
    expect(panel.page.locator(".nbp-graph-tip")).to_contain_text("0.5, of step 0")
    expect(box(panel, "fc")).to_have_class(re.compile("nbp-unmeasured"))
    panel.say({"v": 1, "type": "pointed", "step": 9})
    panel.wait_frame()
    assert colour(panel, "layer4") == (0xFF, 0x2A, 0x55)
    box(panel, "layer4").hover()
    expect(panel.page.locator(".nbp-graph-tip")).to_contain_text("contains NaN or infinity")


def test_a_click_marks_the_module_in_the_tree_and_draws_its_series(panel: PanelPage) -> None:
    box(panel, "fc").click()
    expect(panel.row("fc")).to_have_attribute("aria-selected", "true")
    expect(box(panel, "fc")).to_have_attribute("aria-selected", "true")
    panel.page.wait_for_function("sent.some((m) => m.type === 'selection')")
    assert panel.sent("selection")[-1]["series"] == [["fc", "grad_norm"]]
    box(panel, "bn1").click()
    chips = panel.page.locator(".nbp-chips .nbp-chip")
    expect(chips).to_have_text(re.compile("bn1"))
    box(panel, "layer1").click()
    expect(panel.row("layer1")).to_have_attribute("aria-selected", "true")
    expect(chips).to_have_count(1)


def test_a_double_click_opens_and_leaves_the_lines_as_they_were(bare: PanelPage) -> None:
    graph = resnet18()
    panel = show_graph(bare, graph)
    rows = [*weighted(graph), "layer1"]
    panel.draw(*kernel.heat_message(np.full((len(rows), 3), 0.1), rows, seq=2))
    box(panel, "layer1").dblclick()
    expect(box(panel, "layer1.0")).to_be_visible()
    expect(panel.page.locator(".nbp-chips .nbp-chip")).to_have_count(0)


def test_a_row_of_the_tree_outlines_its_box_or_the_closed_one_that_holds_it(
    panel: PanelPage,
) -> None:
    panel.row("layer1.0.conv2").click()
    expect(box(panel, "layer1")).to_have_attribute("data-holds", "")
    expect(box(panel, "layer1")).to_have_attribute("aria-selected", "false")
    box(panel, "layer1").locator(".nbp-graph-fold").click()
    box(panel, "layer1.0").locator(".nbp-graph-fold").click()
    expect(box(panel, "layer1.0.conv2")).to_have_attribute("aria-selected", "true")
    panel.page.locator("[data-role=search]").fill("BatchNorm2d")
    expect(box(panel, "bn1")).to_have_attribute("aria-selected", "true")


def test_arrows_walk_along_the_edges_and_mark(panel: PanelPage) -> None:
    box(panel, "conv1").focus()
    panel.page.keyboard.press("ArrowDown")
    box(panel, "conv1").click()
    for module in ("bn1", "relu", "maxpool"):
        panel.page.keyboard.press("ArrowDown")
        expect(box(panel, module)).to_be_focused()
        expect(panel.row(module)).to_have_attribute("aria-selected", "true")
    panel.page.keyboard.press("ArrowUp")
    expect(box(panel, "relu")).to_be_focused()
    assert panel.sent("control") == []
    panel.page.keyboard.press("g")
    expect(panel.heat).to_be_visible()


def test_a_box_says_what_it_is_to_those_who_do_not_see_it(panel: PanelPage) -> None:
    said = box(panel, "layer2").get_attribute("aria-label") or ""
    assert said.startswith("layer2  Sequential, grad_norm")
    assert "gives 8×128×28×28  float32" in said
    expect(panel.page.get_by_role("tree", name="Graph of the network")).to_have_count(1)
    focusable = panel.page.locator('.nbp-graph-box[tabindex="0"]')
    expect(focusable).to_have_count(1)


def test_buttons_keys_and_the_wheel_zoom_and_a_drag_pans(panel: PanelPage) -> None:
    fitted = camera(panel)
    panel.action("graph-larger").click()
    assert camera(panel)["zoom"] == pytest.approx(1.4 * fitted["zoom"])
    panel.action("graph-fit").click()
    assert camera(panel) == fitted
    place = panel.page.locator(".nbp-graph-plane").bounding_box()
    assert place is not None
    x, y = place["x"] + 60, place["y"] + 200
    panel.page.mouse.move(x, y)
    panel.page.mouse.wheel(0, -100)
    assert camera(panel) == fitted, "the page scrolls"
    panel.page.keyboard.down("Control")
    panel.page.mouse.wheel(0, -100)
    panel.page.keyboard.up("Control")
    zoomed = camera(panel)
    assert zoomed["zoom"] > fitted["zoom"]
    at = (fitted["x"] + 60 / fitted["zoom"], fitted["y"] + 200 / fitted["zoom"])
    assert zoomed["x"] + 60 / zoomed["zoom"] == pytest.approx(at[0], abs=1)
    assert zoomed["y"] + 200 / zoomed["zoom"] == pytest.approx(at[1], abs=1)
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    panel.page.mouse.move(x + 30, y - 20, steps=3)
    panel.page.mouse.up()
    moved = camera(panel)
    assert moved["x"] == pytest.approx(zoomed["x"] - 30 / zoomed["zoom"], abs=0.1)
    assert moved["y"] == pytest.approx(zoomed["y"] + 20 / zoomed["zoom"], abs=0.1)
    box(panel, "conv1").focus()
    panel.page.keyboard.press("0")
    assert camera(panel) == fitted


def test_a_search_outlines_what_it_finds_and_enter_goes_there(panel: PanelPage) -> None:
    find = panel.page.locator("[data-role=graph-search]")
    find.fill("downsample.0")
    told = panel.page.locator(".nbp-graph-found")
    expect(told).to_have_text("3 found")
    for layer in ("layer2", "layer3", "layer4"):
        expect(box(panel, layer)).to_have_attribute("data-found", "")
    expect(box(panel, "layer1")).not_to_have_attribute("data-found", "")
    find.press("Enter")
    expect(box(panel, "layer2.0.downsample.0")).to_have_attribute("aria-selected", "true")
    expect(panel.row("layer2.0.downsample.0")).to_be_visible()
    find.press("Enter")
    expect(box(panel, "layer3.0.downsample.0")).to_have_attribute("aria-selected", "true")
    find.fill("flatten")
    expect(told).to_have_text("1 found")
    expect(panel.page.locator(".nbp-graph-box[data-found]")).to_have_text("flatten")
    find.fill("laier1")
    expect(told).to_have_text("Nothing is called laier1; near: layer1, layer2, layer3")
    find.press("Escape")
    expect(told).to_be_hidden()


def test_names_of_a_network_are_shown_and_never_run(bare: PanelPage) -> None:
    hostile = "<img src=x onerror=hacked=1>"
    net = Drawing(hostile)
    x = net.node(hostile, "", shape=[1], kind="input")
    x = net.layer(f"{hostile}\n‮", hostile, hostile, x, [2], 7)
    net.node("__proto__", "constructor", [net.node(hostile, "__proto__", [x])])
    panel = show_graph(bare, net.graph)
    for one in boxes(panel).all():
        one.hover(force=True)
    panel.wait_frame()
    assert panel.page.evaluate("window.hacked") is None
    assert panel.errors == []
    expect(panel.page.locator(".nbp-trouble")).to_be_hidden()
    expect(boxes(panel).filter(has_text=hostile)).not_to_have_count(0)


def test_ten_thousand_nodes_stay_usable(bare: PanelPage) -> None:
    panel = show_graph(bare, deep_graph())
    plane = panel.page.locator(".nbp-graph-plane")
    assert int(plane.get_attribute("data-items") or 0) <= 40
    box(panel, "layers").locator(".nbp-graph-fold").click()
    expect(plane).to_have_attribute("data-items", "1003")
    assert boxes(panel).count() < 60, "what is out of sight is not there"
    panel.page.locator("[data-role=graph-search]").fill("layers.777")
    panel.page.keyboard.press("Enter")
    expect(box(panel, "layers.777")).to_be_visible()
    for _ in range(8):
        panel.action("graph-smaller").click()
    panel.wait_frame()
    assert panel.errors == []


def test_without_a_graph_a_button_asks_for_one_and_says_what_became_of_it(
    bare: PanelPage,
) -> None:
    panel = introduce(bare.show(880))
    why = "The graph of the network is not built yet."
    panel.say({"v": 1, "type": "graph", "revision": 0, "why": why})
    panel.page.keyboard.press("g")
    panel.root.focus()
    panel.page.keyboard.press("g")
    note = panel.page.locator(".nbp-graph-note")
    expect(note).to_contain_text(why)
    panel.action("build-graph").click()
    asked = panel.wait_sent("build_graph")
    tickets = [kernel.ticket(asked["id"], "queued")]
    panel.say(kernel.status_message(tickets=tickets))
    expect(note).to_contain_text("queued 1 236")
    panel.picture("graph-none")
    graph = resnet18()
    panel.say({"v": 1, "type": "graph", "revision": 4, "why": ""})
    panel.wait_sent("show_graph")
    tell(panel, graph, 4)
    expect(note).to_be_hidden()
    expect(box(panel, "layer1")).to_be_visible()


def test_a_newer_graph_takes_the_place_of_the_old_one_with_its_folds(panel: PanelPage) -> None:
    box(panel, "layer1").dblclick()
    panel.say({"v": 1, "type": "graph", "revision": 2, "why": ""})
    panel.wait_sent("show_graph", 2)
    tell(panel, resnet18(), 2)
    panel.wait_frame()
    expect(box(panel, "layer1.0")).to_be_visible()


def test_an_opened_record_without_a_graph_says_so(bare: PanelPage) -> None:
    panel = introduce(bare.show(880))
    panel.say({**kernel.model_message(), "live": False})
    panel.say({"v": 1, "type": "graph", "revision": 0, "why": "This record holds no graph."})
    panel.action("graph").click()
    expect(panel.page.locator(".nbp-graph-note")).to_contain_text("This record holds no graph.")
    expect(panel.action("build-graph")).to_be_hidden()


def test_of_a_run_that_has_ended_it_is_said_that_no_graph_was_built(bare: PanelPage) -> None:
    panel = introduce(bare.show(880))
    panel.say({"v": 1, "type": "graph", "revision": 0, "why": "It is not built yet."})
    panel.action("graph").click()
    note = panel.page.locator(".nbp-graph-note")
    expect(note).to_contain_text("It is not built yet.")
    expect(panel.action("build-graph")).to_be_visible()
    panel.say(kernel.status_message(state="finished"))
    expect(note).to_contain_text("The graph was not built before the run ended.")
    expect(panel.action("build-graph")).to_be_hidden()


def test_where_nothing_is_measured_yet_the_graph_is_offered(bare: PanelPage) -> None:
    panel = bare.show(880)
    graph: dict[str, Any] = resnet18()
    panel.say({**kernel.model_message(), "modules": table_of(graph), "kinds": []})
    panel.say(kernel.status_message(attached=[], tallies=[], recorded={}))
    panel.say({"v": 1, "type": "graph", "revision": 1, "why": ""})
    panel.action("graph").click()
    tell(panel, graph)
    expect(box(panel, "conv1")).to_be_visible()
    expect(box(panel, "conv1")).not_to_have_class(re.compile("nbp-coloured"))


def test_modules_alone_stand_below_each_other_and_it_is_said_why(bare: PanelPage) -> None:
    net = Drawing("Untraceable")
    for path in ("stem", "body", "head"):
        net.module(path, "Linear", 20, calls=0)
        net.node("Linear", path, shape=[8, 4], kind="module")
    why = "not exported: no inputs"
    panel = show_graph(bare, {**net.graph, "how": "tree", "why": why})
    told = panel.page.locator(".nbp-graph-how")
    expect(told).to_have_text("Only the modules: their connections are not known")
    expect(told).to_have_attribute("title", why)
    places = [one.bounding_box() for one in boxes(panel).all()]
    tops = [place["y"] for place in places if place]
    assert tops == sorted(set(tops))
    assert len(tops) == 3


def test_a_graph_that_is_damaged_says_so_in_its_place(bare: PanelPage) -> None:
    panel = introduce(bare.show(880))
    panel.say({"v": 1, "type": "graph", "revision": 3, "why": ""})
    panel.action("graph").click()
    panel.wait_sent("show_graph")
    error = "graph: version is 7; 1 is read"
    panel.say({"v": 1, "type": "shown_graph", "revision": 3, "error": error})
    expect(panel.page.locator(".nbp-graph-note")).to_contain_text(error)
    assert panel.errors == []
