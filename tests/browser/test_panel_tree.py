"""The module tree: ten thousand modules, search, marks, keys, hostile names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import (
    DIGITS,
    Module,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    panel = bare.show()
    panel.say(model_message())
    panel.say(status_message())
    return panel


def expect_marked(panel: PanelPage, *paths: str) -> None:
    """These rows are marked, in this order; rows are filled in the next animation frame."""
    rows = "document.querySelectorAll('.nbp-row[aria-selected=true]:not([hidden])')"
    script = f"(wanted) => JSON.stringify([...{rows}].map((row) => row.dataset.module)) === wanted"
    panel.page.wait_for_function(script, arg=json.dumps(list(paths), separators=(",", ":")))


def search(panel: PanelPage) -> Locator:
    return panel.page.locator("[data-role=search]")


def test_rows_stand_in_forward_order_with_class_and_parameter_count(shown: PanelPage) -> None:
    expect(shown.row("block.conv2")).to_contain_text("Conv2d 18.5\u202fk")
    tops = [shown.row(path).bounding_box()["y"] for path, *_ in DIGITS[:12]]  # type: ignore[index]
    assert tops == sorted(tops)


def test_a_dot_marks_where_something_is_attached_and_a_sign_where_something_is_wrong(
    shown: PanelPage,
) -> None:
    expect(shown.row("stem.conv1").locator(".nbp-mark")).to_have_text("●")
    expect(shown.row("stem.relu1").locator(".nbp-mark")).to_have_text("")
    problem = {
        "module": "stem.relu1",
        "quantity": "zero_fraction",
        "text": "ZeroDivisionError",
        "count": 3,
        "disabled": True,
    }
    shown.say(status_message(problems=[problem]))
    expect(shown.row("stem.relu1").locator(".nbp-warn")).to_have_text("▲")


def test_ten_thousand_modules_need_only_the_rows_in_sight(bare: PanelPage) -> None:
    modules: list[Module] = [("(root)", "Net", 0, 0, -1)]
    modules += [(f"layer{k}", "Linear", 10, 10, 0) for k in range(10_000)]
    panel = bare.show()
    panel.say(model_message(modules))
    panel.say(status_message(attached=[], recorded={}))
    assert bare.page.locator(".nbp-row").count() < 60
    tree = bare.page.locator(".nbp-tree")
    assert tree.evaluate("(tree) => tree.scrollHeight") == 22 * 10_001
    tree.evaluate("(tree) => { tree.scrollTop = 22 * 7000; }")
    expect(panel.row("layer7003")).to_be_visible()
    search(panel).fill("layer9999")
    expect(panel.row("layer9999")).to_have_attribute("aria-selected", "true")
    assert bare.page.locator(".nbp-row").count() < 60


def test_escape_ends_a_search_and_keeps_what_it_marked(shown: PanelPage) -> None:
    search(shown).fill("*.conv*")
    expect(shown.page.locator(".nbp-found")).to_have_text("3 found")
    expect(shown.row("head.fc2")).to_be_hidden()
    search(shown).press("Escape")
    expect(search(shown)).to_have_value("")
    expect(shown.page.locator(".nbp-found")).to_have_text("")
    expect(shown.row("head.fc2")).to_be_visible()
    expect_marked(shown, "stem.conv1", "block.conv2", "block.conv3")


WHERE = """([field, count]) => {
  const text = document.createRange();
  text.selectNodeContents(count);
  const middle = ({ top, bottom }) => (top + bottom) / 2;
  const [own, said] = [field.getBoundingClientRect(), text.getBoundingClientRect()];
  const typed = own.right - parseFloat(getComputedStyle(field).paddingRight);
  return [typed, said.left, said.right, own.right, middle(said) - middle(own)];
}"""


def test_what_is_typed_and_how_many_were_found_stand_side_by_side(shown: PanelPage) -> None:
    field, found = search(shown), shown.page.locator(".nbp-found")
    field.fill("*.conv*")
    expect(found).to_have_text("3 found")
    *places, lower = shown.page.evaluate(WHERE, [field.element_handle(), found.element_handle()])
    assert places == sorted(places)
    assert abs(lower) <= 2


def test_a_search_shows_and_marks_what_matches(shown: PanelPage) -> None:
    search(shown).fill("*.conv*")
    expect(shown.page.locator(".nbp-row:visible")).to_have_count(3)
    expect_marked(shown, "stem.conv1", "block.conv2", "block.conv3")
    expect(shown.action("attach")).to_have_text("Attach to 3 modules")
    search(shown).fill("ReLU")
    expect(shown.page.locator(".nbp-found")).to_have_text("3 found")
    search(shown).fill("")
    expect(shown.row("head.fc2")).to_be_visible()
    expect_marked(shown, "stem.relu1", "block.relu2", "block.relu3")


def test_clicks_mark_one_a_range_or_several(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    expect_marked(shown, "stem.conv1")
    shown.row("block").click(modifiers=["Shift"])
    expect_marked(shown, "stem.conv1", "stem.bn1", "stem.relu1", "block")
    shown.row("stem.bn1").click(modifiers=["Control"])
    expect_marked(shown, "stem.conv1", "stem.relu1", "block")


def test_a_module_folds_away_with_everything_below_it(shown: PanelPage) -> None:
    shown.row("block").locator(".nbp-fold").click()
    expect(shown.row("block.conv2")).to_be_hidden()
    expect(shown.row("block")).to_have_attribute("aria-expanded", "false")
    expect_marked(shown)
    shown.row("block").locator(".nbp-fold").click()
    expect(shown.row("block.conv2")).to_be_visible()


def test_the_tree_can_be_walked_with_the_keyboard(shown: PanelPage) -> None:
    shown.row("stem").click()
    shown.page.keyboard.press("ArrowDown")
    expect_marked(shown, "stem.conv1")
    shown.page.keyboard.press("Shift+ArrowDown")
    expect_marked(shown, "stem.conv1", "stem.bn1")
    shown.page.keyboard.press("Home")
    expect_marked(shown, "(root)")
    shown.page.keyboard.press("ArrowLeft")
    expect(shown.row("stem")).to_be_hidden()


HOSTILE = '<img src=x onerror="window.hacked = 1">'


def test_hostile_names_are_shown_and_never_run(bare: PanelPage) -> None:
    panel = bare.show()
    modules: list[Module] = [
        ("(root)", "Net", 1, 0, -1),
        (HOSTILE, "<script>hacked=1</script>", 1, 1, 0),
    ]
    panel.say(model_message(modules, name=HOSTILE))
    problem = {
        "module": HOSTILE,
        "quantity": HOSTILE,
        "text": HOSTILE,
        "count": 1,
        "disabled": False,
    }
    panel.say(
        status_message(
            attached=[(HOSTILE, HOSTILE, HOSTILE)],
            recorded={HOSTILE: [HOSTILE]},
            route=HOSTILE,
            record=HOSTILE,
            problems=[problem],
            silent=[{"kind": "silent", "reason": HOSTILE, "probes": [0]}],
            vectors=[HOSTILE],
            budget=HOSTILE,
            progress=HOSTILE,
            scalar=(HOSTILE, 1.0, [1.0]),
        )
    )
    panel.say(selection_message(home=HOSTILE, series=[(HOSTILE, HOSTILE)]))
    panel.draw(*heat_message([[1.0, 2.0]], [HOSTILE], quantity=HOSTILE))
    panel.draw(*lines_message({(HOSTILE, HOSTILE): ([0, 1], [1.0, 2.0])}))
    panel.action("add").click()
    bare.page.mouse.move(500, 150)
    bare.page.mouse.move(500, 450)
    expect(bare.page.locator(".nbp-row:visible .nbp-name").nth(1)).to_have_text(HOSTILE)
    assert (
        bare.page.evaluate("document.querySelectorAll('.nbp-panel img, .nbp-panel script').length")
        == 0
    )
    assert bare.page.evaluate("window.hacked") is None
    assert panel.errors == []


def test_a_name_has_the_room_that_there_is_before_its_class_has_any(bare: PanelPage) -> None:
    long = "encoder.layers.11.attention.c_proj_weights"
    modules: list[Module] = [
        ("(root)", "Net", 10, 0, -1),
        ("feed_forward_network_with_gates", "SwiGLUFeedForward", 10, 10, 0),
        (long, "Linear", 10, 10, 0),
    ]
    panel = bare.show(1280)
    panel.say(model_message(modules))
    panel.say(status_message())
    panel.say(selection_message())
    name = panel.row(modules[1][0]).locator(".nbp-name")
    expect(name).to_have_text(modules[1][0])
    cut = """(node) => { const range = document.createRange(); range.selectNodeContents(node);
      return range.getBoundingClientRect().width > node.getBoundingClientRect().width + 0.01; }"""
    assert not name.evaluate(cut), "31 letters of 7 pixels stand in 300"
    panel.picture("tree-long-names")
    search(panel).fill("c_proj")
    name = panel.page.locator(f'.nbp-row[data-module="{long}"]:not([hidden]) .nbp-name')
    expect(name).to_have_text("e.l.11.attention.c_proj_weights")
    assert not name.evaluate(cut)
    panel.draw(*heat_message(np.ones((1, 100)), [long]))
    expect(name).to_have_text("e.l.11.a.c_proj_weights")
    assert not name.evaluate(cut)


def test_a_class_has_the_room_of_a_swatch_that_is_not_there(bare: PanelPage) -> None:
    modules: list[Module] = [
        ("(root)", "Net", 10, 0, -1),
        ("fc", "Linear", 10, 10, 0),
        ("embedding_dropout_", "Dropout", 0, 0, 0),
    ]
    panel = bare.show(880)
    panel.say(model_message(modules))
    panel.say(status_message())
    panel.say(selection_message())
    panel.draw(*heat_message(np.ones((1, 100)), ["fc"]))
    named = panel.row("embedding_dropout_").locator(".nbp-class")
    assert named.evaluate("(node) => node.scrollWidth <= node.clientWidth")


def test_a_count_has_the_room_of_a_swatch_that_is_not_there(bare: PanelPage) -> None:
    modules: list[Module] = [
        ("(root)", "GPT", 20000, 0, -1),
        ("blocks", "ModuleList", 20000, 0, 0),
        ("blocks.0", "Block", 20000, 0, 1),
        ("blocks.0.attn", "Attention", 16640, 0, 2),
        ("blocks.0.attn.qkv", "Linear", 12480, 12480, 3),
    ]
    panel = bare.show(880)
    panel.say(model_message(modules))
    panel.say(status_message())
    panel.say(selection_message())
    panel.draw(*heat_message(np.ones((1, 100)), ["blocks.0.attn.qkv"]))
    row = panel.row("blocks.0.attn")
    expect(row.locator(".nbp-count")).to_have_text("16.6\u202fk")
    top = "(node) => node.getBoundingClientRect().top"
    tops = {row.locator(f".nbp-{part}").evaluate(top) for part in ("class", "count")}
    assert len(tops) == 1, "the count has wrapped out of sight"


BLOCK = [("", "Block", 40), ("norm", "LayerNorm", 8), ("attn", "Linear", 16), ("mlp", "Linear", 16)]


def blocks(n: int) -> list[Module]:
    """A model of ``n`` equal blocks of four modules, and a last one that differs."""
    modules: list[Module] = [
        ("(root)", "GPT", 40 * n, 0, -1),
        ("blocks", "ModuleList", 40 * n, 0, 0),
    ]
    for block in range(n):
        first = len(modules)
        for name, kind, size in BLOCK:
            path = f"blocks.{block}" + (f".{name}" if name else "")
            modules.append((path, kind, size, size if name else 0, first if name else 1))
    first = len(modules)
    modules.append((f"blocks.{n}", "Block", 16, 0, 1))
    modules.append((f"blocks.{n}.only", "Linear", 16, 16, first))
    return modules


def rows_of(panel: PanelPage) -> float:
    """How many rows the tree has, from its height."""
    return float(panel.page.locator(".nbp-rows").evaluate("(rows) => rows.offsetHeight / 22"))


def test_blocks_that_repeat_the_first_are_folded_in_a_large_model(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message(blocks(625)))
    panel.say(status_message(attached=[], tallies=[]))
    panel.wait_frame()
    # Root, list, the first block with its three, 624 folded, and the one that differs with its own.
    assert rows_of(panel) == 2 + 4 + 624 + 2
    expect(panel.row("blocks.0")).to_have_attribute("aria-expanded", "true")
    expect(panel.row("blocks.1")).to_have_attribute("aria-expanded", "false")
    panel.picture("tree-repeats")


def test_a_block_that_was_unfolded_stays_so_when_the_model_is_sent_again(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message(blocks(60)))
    panel.say(status_message(attached=[], tallies=[]))
    panel.row("blocks.1").locator(".nbp-fold").click()
    panel.say(model_message(blocks(61)))
    panel.wait_frame()
    expect(panel.row("blocks.1")).to_have_attribute("aria-expanded", "true")
    expect(panel.row("blocks.2")).to_have_attribute("aria-expanded", "false")


def test_a_small_model_is_shown_whole(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message(blocks(12)))
    panel.wait_frame()
    assert rows_of(panel) == 2 + 4 * 12 + 2


def test_rows_stay_in_order_on_the_page_however_they_are_scrolled(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message([(f"m{k}", "Linear", 1, 1, -1) for k in range(3000)]))
    panel.say(status_message(attached=[], tallies=[]))
    tree = panel.page.locator(".nbp-tree")
    for pixels in (500, 700, 20_000, 19_700, 0, 66_000):
        tree.evaluate("(tree, pixels) => (tree.scrollTop = pixels)", pixels)
        panel.wait_frame()
        names = panel.page.locator(".nbp-row:not([hidden])").evaluate_all(
            "(rows) => rows.map((row) => row.dataset.module)"
        )
        first = int(names[0][1:])
        assert names == [f"m{first + k}" for k in range(len(names))]
        assert first * 22 <= pixels < (first + len(names)) * 22 + 22
