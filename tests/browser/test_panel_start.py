"""The first thirty seconds: what is drawn before anything is clicked, and what it is called."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

LOSS, ACCURACY = ("(root)", "loss"), ("(root)", "accuracy")
RECORDED = {
    "update_ratio": kernel.WEIGHTED,
    "grad_norm": kernel.WEIGHTED,
    "output_std": kernel.WEIGHTED,
    "weight_norm": kernel.WEIGHTED,
    "loss": ["(root)"],
    "accuracy": ["(root)"],
}
LOGGED = ["loss", "accuracy"]
STEPS = np.arange(31)


def begun(panel: PanelPage, **changes: object) -> PanelPage:
    """Thirty steps of a run that logs two scalars."""
    panel.say(kernel.model_message())
    changes = {"step": 30, "recorded": RECORDED, "logged": LOGGED, "rate": 44.0, **changes}
    panel.say(kernel.status_message(**changes))
    panel.say(kernel.selection_message(home="update_ratio", series=[LOSS, ACCURACY], smooth=0.9))
    ratios = 1e-3 * np.exp(np.random.default_rng(1).normal(0, 1, (len(kernel.WEIGHTED), 31)))
    panel.draw(*kernel.heat_message(ratios, kernel.WEIGHTED, quantity="update_ratio"))
    losses = 2.4 * np.exp(-STEPS / 40), 0.1 + 0.5 * STEPS / 30
    lines = {LOSS: (STEPS, losses[0]), ACCURACY: (STEPS, losses[1])}
    panel.draw(*kernel.lines_message(lines, smooth=0.9))
    return panel


def test_logged_scalars_are_called_by_their_names_and_listed_first(bare: PanelPage) -> None:
    panel = begun(bare.show(880))
    expect(panel.page.locator(".nbp-chip.nbp-on")).to_contain_text(["loss", "accuracy"])
    assert panel.lines.get_attribute("data-series") == '["loss","accuracy"]'
    panel.action("add").click()
    items = panel.page.locator(".nbp-item:visible span:first-child")
    expect(items.nth(0)).to_have_text("loss")
    expect(items.nth(1)).to_have_text("accuracy")
    panel.page.keyboard.press("Escape")
    expect(panel.page.locator(".nbp-quantities [data-quantity=loss]")).to_have_count(0)


def test_without_scalars_the_lines_say_how_to_log_one(shown: PanelPage) -> None:
    note = shown.page.locator(".nbp-plot:has(.nbp-lines) .nbp-note")
    expect(note).to_contain_text("No scalar is logged: run.log(loss=loss) draws it here.")
    shown.say(kernel.status_message(recorded=RECORDED, logged=LOGGED))
    expect(note).to_contain_text("or + above, to draw a series")


def test_where_only_scalars_are_recorded_the_lines_are_seen_below_the_three_buttons(
    bare: PanelPage,
) -> None:
    panel = bare.show(880)
    panel.say(kernel.model_message())
    only = {"loss": ["(root)"]}
    panel.say(kernel.status_message(attached=[], recorded=only, logged=["loss"], tallies=[]))
    panel.say(kernel.selection_message(home="", series=[LOSS]))
    panel.draw(*kernel.lines_message({LOSS: (STEPS, np.exp(-STEPS / 9))}))
    empty = panel.page.locator(".nbp-empty")
    expect(empty.locator("button")).to_have_count(3)
    above, below = empty.bounding_box(), panel.lines.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [640, 880, 1280])
def test_thirty_steps_fit_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = begun(bare.show(width, theme))
    overflow = panel.root.evaluate("(root) => root.scrollWidth - root.clientWidth")
    assert overflow <= 0
    panel.picture(f"start-{width}-{theme}")
    assert panel.errors == []


MARK = """(canvas, x) => {
  const ratio = canvas.width / canvas.clientWidth;
  const { data } = canvas.getContext("2d").getImageData(x * ratio, 0, 1, canvas.height);
  const rows = [];
  for (let y = 0; y < canvas.height; y++) if (data[4 * y + 3]) rows.push(y / ratio);
  return rows;
}"""


def test_the_usual_value_is_marked_beside_the_colours_of_its_quantity(bare: PanelPage) -> None:
    panel = bare.show(880)
    panel.say(kernel.model_message())
    panel.say(kernel.status_message(recorded=RECORDED, logged=LOGGED))
    cells = np.tile(
        [1e-4, 1e-3, 1e-2], (8, 1)
    )  # none is far from the others: 1e-3 is in the middle
    for seq, (quantity, is_marked) in enumerate([("update_ratio", True), ("grad_norm", False)], 1):
        panel.say(kernel.selection_message(home=quantity))
        panel.draw(*kernel.heat_message(cells, kernel.WEIGHTED, quantity=quantity, seq=seq))
        panel.wait_frame()
        _, top, right, _ = json.loads(panel.heat.get_attribute("data-box") or "")
        height = panel.heat.evaluate("(canvas) => canvas.clientHeight")
        middle = (top + height - 22 - 30) / 2
        rows = panel.heat.evaluate(MARK, right + 11)
        marked = [row for row in rows if abs(row - middle) < 15]  # what lies beyond has arrows
        assert bool(marked) == is_marked, quantity
        if is_marked:
            assert np.mean(marked) == pytest.approx(middle, abs=2.0)


LR = {
    "name": "lr",
    "value": 1e-3,
    "low": 0.0,
    "high": None,
    "log": True,
    "groups": [1e-3],
    "of": "SGD, 1 group",
    "details": [{"text": "2 weights", "scheduled": None, "held": False}],
}
NAME = "digits-cnn-big"  # 14 characters


def knobs() -> dict[str, object]:
    return {"v": 1, "type": "knobs", "knobs": [LR], "hint": None, "last": None}


def test_the_bar_is_one_line_at_880_with_room_for_a_name(bare: PanelPage) -> None:
    panel = begun(bare.show(880), step=112_336, scalar=("loss", 1.36, [1.0, 1.36]))
    panel.say(kernel.model_message(name=NAME))
    panel.say(knobs())
    bar = panel.page.locator(".nbp-bar")
    box = bar.bounding_box()
    assert box is not None
    assert box["height"] < 48
    texts = (NAME, "training", "step 112\u202f336 · 44/s", "loss 1.36", "lr 1e−3", "probes 2.1")
    for text in texts:
        expect(bar).to_contain_text(text)
    is_cut = "(node) => node.scrollWidth > node.clientWidth"
    assert not panel.page.locator(".nbp-run-name").evaluate(is_cut)
    panel.picture("start-880-long")
    panel.say(kernel.model_message(name=NAME * 3))
    assert panel.page.locator(".nbp-run-name").evaluate(is_cut), "the name gives way"
    assert not panel.page.locator(".nbp-state").evaluate(is_cut)
    expect(panel.page.locator(".nbp-run")).to_have_attribute("title", re.compile(NAME * 3))
    assert panel.root.evaluate("(root) => root.scrollWidth <= root.clientWidth")


def test_how_far_it_goes_is_cut_before_the_name_and_the_step_never(bare: PanelPage) -> None:
    far = {"step": 112_336, "end_step": 200_000, "epoch": 3, "seconds_left": 4000.0}
    panel = begun(bare.show(880), **far, scalar=("loss", 1.36, [1.0, 1.36]))
    panel.say(kernel.model_message(name=NAME))
    panel.say(knobs())
    is_cut = "(node) => node.scrollWidth > node.clientWidth"
    assert panel.page.locator(".nbp-end").evaluate(is_cut)
    assert not panel.page.locator(".nbp-run-name").evaluate(is_cut)
    step, rate = (
        panel.page.locator(f".nbp-far {one}").bounding_box() for one in ("b", ".nbp-rate")
    )
    assert step is not None
    assert rate is not None
    assert step["x"] + step["width"] <= rate["x"] + 0.5
    words = "step 112\u202f336 of 200\u202f000 · epoch 3 · 67\u202fmin left"
    expect(panel.page.locator(".nbp-step")).to_have_attribute("title", words)


def test_how_clicks_act_is_said_in_the_bar_only_when_they_wait(shown: PanelPage) -> None:
    state, route = shown.page.locator(".nbp-state"), shown.page.locator(".nbp-route")
    expect(route).to_have_text("")
    expect(state).to_have_attribute("title", re.compile("while a cell runs .*own subshell"))
    shown.say(kernel.status_message(route="after the cell"))
    expect(route).to_have_text("clicks act when the cell ends")
    expect(state).to_have_attribute("title", re.compile("train_in_background"))


def test_a_last_value_is_a_line_in_the_bar_from_1040_on(bare: PanelPage) -> None:
    for width, is_seen in ((1039, False), (1042, True)):
        panel = begun(bare.show(width))
        expect(panel.page.locator(".nbp-spark")).to_be_visible(visible=is_seen)


def test_in_a_narrow_cell_rate_and_cost_are_behind_dots_and_step_waits(bare: PanelPage) -> None:
    panel = begun(bare.show(640))
    panel.say(knobs())
    for hidden in ("knobs", "probes", "step"):
        expect(panel.action(hidden)).to_be_hidden()
    panel.action("words").click()
    expect(panel.action("words")).to_have_attribute("aria-expanded", "true")
    panel.picture("start-640-words")
    panel.action("knobs").click()
    expect(panel.page.get_by_role("dialog")).to_be_visible()
    panel.page.keyboard.press("Escape")
    expect(panel.page.get_by_role("dialog")).to_have_count(0)
    expect(panel.action("knobs")).to_be_focused()
    panel.page.keyboard.press("Escape")
    expect(panel.action("knobs")).to_be_hidden()
    expect(panel.action("words")).to_be_focused()
    panel.say(kernel.status_message(state="paused"))
    expect(panel.action("step")).to_be_visible()


def test_a_row_gives_room_to_its_name_then_its_class_then_its_count(bare: PanelPage) -> None:
    panel = bare.show(880)
    long = "a_longer_name_here"
    table = [("(root)", "Net", 1000, 0, -1), ("fc", "Linear", 1000, 1000, 0)]
    panel.say(kernel.model_message([*table, (long, "Linear", 1000, 1000, 0)]))
    row = panel.row(long)
    tops = "(node) => node.getBoundingClientRect().top"
    assert not row.locator(".nbp-name").evaluate("(node) => node.scrollWidth > node.clientWidth")
    assert row.locator(".nbp-count").evaluate(tops) > row.locator(".nbp-class").evaluate(tops)
    short = panel.row("fc")
    assert short.locator(".nbp-count").evaluate(tops) == short.locator(".nbp-class").evaluate(tops)


def test_the_root_has_the_first_scalar_as_a_line_and_others_their_strip(bare: PanelPage) -> None:
    panel = begun(bare.show(880))
    root, other = (panel.row(name).locator("canvas") for name in ("(root)", "stem.conv1"))
    expect(root).to_have_class(re.compile("nbp-line-swatch"))
    expect(other).not_to_have_class(re.compile("nbp-line-swatch"))
    coloured = "(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean)"
    assert root.evaluate(coloured)
    assert other.evaluate(coloured)


def test_a_search_without_a_match_names_what_is_near(shown: PanelPage) -> None:
    search = shown.page.locator("[data-role=search]")
    search.fill("conv9")
    nothing = shown.page.locator(".nbp-nothing")
    expect(nothing).to_have_text("Nothing is called conv9; near: conv1, conv2, conv3")
    search.fill("linaer")
    expect(nothing).to_have_text("Nothing is called linaer; near: Linear")
    search.fill("quaternion")
    expect(nothing).to_have_text("Nothing is called quaternion")
    search.fill("conv")
    expect(nothing).to_be_hidden()


def test_after_a_search_the_tree_stands_where_it_stood(bare: PanelPage) -> None:
    panel = bare.show(880)
    layers: list[kernel.Module] = [(f"layer{k}", "Linear", 10, 10, 0) for k in range(2000)]
    panel.say(kernel.model_message([("(root)", "Net", 0, 0, -1), *layers]))
    tree = panel.page.locator(".nbp-tree")
    tree.evaluate("(tree) => { tree.scrollTop = 22 * 700; }")
    search = panel.page.locator("[data-role=search]")
    search.fill("layer19")
    assert tree.evaluate("(tree) => tree.scrollTop") == 0
    search.fill("layer199")
    search.press("Escape")
    assert tree.evaluate("(tree) => tree.scrollTop") == 22 * 700
    expect(panel.row("layer703")).to_be_visible()


def test_how_many_probes_there_are_is_counted_and_their_modules_are_marked(
    shown: PanelPage,
) -> None:
    count = shown.action("attached")
    expect(count).to_have_text("8")
    expect(count).to_have_attribute("title", re.compile("^8 probes attached"))
    expect(shown.page.locator(".nbp-row .nbp-mark", has_text="●")).to_have_count(8)
    shown.say(kernel.status_message(attached=[], tallies=[]))
    expect(count).to_have_text("0")


def test_without_a_place_beside_the_notebook_the_panel_is_pinned_to_the_window(
    shown: PanelPage,
) -> None:
    dock = shown.action("dock")
    expect(shown.root).to_have_attribute("data-place", "here")
    shown.page.evaluate("() => { document.body.style.paddingBottom = '4000px'; }")
    dock.click()
    expect(shown.root).to_have_attribute("data-place", "pinned")
    expect(dock).to_have_attribute("aria-pressed", "true")
    shown.page.evaluate("() => scrollTo(0, 3000)")
    expect(shown.root).to_be_in_viewport()
    shown.heat.focus()
    shown.page.keyboard.press("d")
    expect(shown.root).to_have_attribute("data-place", "here")
    expect(shown.root).not_to_be_in_viewport()
    expect(dock).to_have_attribute("title", re.compile("^Dock next to the notebook"))
    assert shown.errors == []


def test_a_narrow_bar_cuts_how_far_it_goes_and_never_the_step(bare: PanelPage) -> None:
    panel = begun(bare.show(600), step=112_336)
    panel.say(kernel.model_message(name=NAME * 2))
    bar, number = panel.page.locator(".nbp-bar"), panel.page.locator(".nbp-step b")
    for changes in ({}, {"end_step": 200_000, "epoch": 12, "seconds_left": 300.0}):
        panel.say(kernel.status_message(step=112_336, **changes))
        box, edge = number.bounding_box(), panel.page.locator(".nbp-step").bounding_box()
        assert box is not None
        assert edge is not None
        assert box["x"] + box["width"] <= edge["x"] + edge["width"] + 0.5
        assert bar.evaluate("(bar) => bar.scrollWidth <= bar.clientWidth")


def test_the_tree_is_wider_from_960_pixels_on(bare: PanelPage) -> None:
    for width, wide in ((880, 264), (959, 264), (960, 300), (1280, 300)):
        begun(bare.show(width))
        box = bare.page.locator(".nbp-left").bounding_box()
        assert box is not None
        assert box["width"] == wide, width
