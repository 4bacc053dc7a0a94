"""Breakpoints in the panel: their list, a new one, their levels in the lines, and being paused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

CONV = ("block.conv3", "grad_norm")


def row(id: int, text: str, number: float | None = None, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": id,
        "kind": "series",
        "text": text,
        "number": number,
        "armed": True,
        "pauses": False,
        "last_step": -1,
        "module": "(root)",
        "quantity": "",
        "sign": "",
        "rules": [],
        "note": "",
    }
    return {**plain, **changes}


HIGH = row(1, "block.conv3 · grad_norm > 0.1", 0.1, module=CONV[0], quantity=CONV[1], sign=">")
SEVERE = row(2, "a severe alert fires", kind="alert")
NAN = row(3, "a loss, output or gradient is NaN or infinite", kind="nan", last_step=640)
AT = row(4, "at step 2000", 2000, kind="step", armed=False)
PAUSED = {"text": "paused at step 212: block.conv3 · grad_norm 12.3 > 10 … and 1 more", "step": 212}


def breaks(*rows: Any, **changes: Any) -> dict[str, Any]:
    empty = {
        "v": 1,
        "type": "breaks",
        "live": True,
        "rows": list(rows),
        "paused": None,
        "traceback": "",
        "severe": ["nonfinite_loss", "loss_spike"],
        "rules": ["dead_units", "nonfinite_loss", "loss_spike"],
        "trial": None,
    }
    return {**empty, **changes}


def draw(panel: PanelPage) -> None:
    norms = kernel.gradient_norms()
    cells = np.array([norms[path] for path in kernel.WEIGHTED])
    panel.draw(*kernel.heat_message(cells, kernel.WEIGHTED))
    panel.say(kernel.selection_message(series=[CONV], smooth=0.9))
    steps = range(kernel.STEPS)
    panel.draw(*kernel.lines_message({CONV: (steps, norms[CONV[0]])}, seq=2, smooth=0.9))


def shown(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    bare.say(kernel.model_message())
    bare.say(kernel.status_message())
    bare.say(breaks())
    bare.say(
        {
            "v": 1,
            "type": "knobs",
            "knobs": [
                {"name": "lr", "value": 0.003, "low": 0.0, "high": None, "log": True, "groups": []}
            ],
        }
    )
    return bare


def opened(panel: PanelPage) -> Locator:
    panel.action("breaks").click()
    return panel.page.get_by_role("dialog", name="Pause when")


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_worth_a_look_while_it_is_held(bare: PanelPage, width: int, theme: str) -> None:
    panel = shown(bare, width, theme)
    draw(panel)
    can = {"pause": "already paused", "resume": "", "step": "", "stop": ""}
    panel.say(kernel.status_message(state="paused", step=213, can=can))
    paused = {**HIGH, "pauses": True, "last_step": 212}
    trial = {
        "module": CONV[0],
        "quantity": CONV[1],
        "now": 0.0138,
        "usual": 0.0061,
        "steps": [3, 6, 118, 240],
        "n_steps": 4,
    }
    panel.say(breaks(paused, SEVERE, NAN, AT, paused=PAUSED, trial=trial))
    panel.picture(f"break-paused-{width}-{theme}")
    reason = panel.page.locator(".nbp-paused")
    expect(reason).to_have_text(str(PAUSED["text"]))
    expect(reason.locator("b")).to_have_text(["212", "12.3"])
    expect(panel.action("resume")).to_have_text("Continue")
    dialog = opened(panel)
    panel.page.get_by_label("Number", exact=True).fill("0.02")
    panel.picture(f"break-{width}-{theme}")
    overflow = "(node) => node.scrollWidth > node.clientWidth + 1"
    assert not panel.root.evaluate(overflow)
    assert not dialog.locator(".nbp-dialog-inside").evaluate(overflow)
    add = panel.action("add-break")
    ends = """(node) => { const box = node.getBoundingClientRect();
      return [box.left, box.right].map(Math.round); }"""
    before = add.evaluate(ends)
    for kind in ("step", "alert", "nan", "error"):
        dialog.locator(f".nbp-kinds [data-kind={kind}]").click()
        panel.wait_frame()
        assert add.evaluate(ends) == before, "the button stays at its end of the line"


def test_the_flag_counts_what_is_armed_and_the_list_says_how_each_stands(
    panel: PanelPage,
) -> None:
    panel.say(breaks({**HIGH, "pauses": True}, SEVERE, NAN, AT))
    expect(panel.action("breaks")).to_have_text("3")
    dialog = opened(panel)
    words = dialog.locator(".nbp-break-text")
    expect(words).to_have_text(
        [
            "block.conv3 · grad_norm > 0.1",
            "a severe alert fires",
            "a loss, output or gradient is NaN or infinite",
            "at step 2 000",
        ],
    )
    stands = dialog.locator(".nbp-break > .nbp-soft")
    expect(stands).to_have_text(["paused now", "not yet", "step 640", "off"])
    panel.say(breaks())
    expect(words).to_have_count(0)
    expect(panel.action("breaks")).to_have_text("")


def test_a_tick_arms_a_number_edits_and_a_cross_removes(panel: PanelPage) -> None:
    panel.say(breaks(HIGH, AT))
    dialog = opened(panel)
    dialog.get_by_label("Armed").last.check()
    asked = panel.wait_sent("edit_break")
    assert (asked["which"], asked["armed"], asked["number"]) == (4, True, None)
    dialog.locator(".nbp-number").first.click()
    field = dialog.get_by_label("Its number").first
    expect(field).to_be_focused()
    field.fill("a lot")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.press("Escape")
    expect(dialog).to_be_visible()
    dialog.locator(".nbp-number").first.click()
    field.fill("0.25")
    field.press("Enter")
    asked = panel.wait_sent("edit_break", 2)
    assert (asked["which"], asked["armed"], asked["number"]) == (1, None, 0.25)
    refused = kernel.ticket(asked["id"], "refused", text="there is no number in it")
    panel.say(kernel.status_message(tickets=[refused]))
    expect(dialog.locator(".nbp-ticket")).to_have_text("there is no number in it")
    dialog.get_by_title("Remove").last.click()
    asked = panel.wait_sent("unbreak")
    assert asked["which"] == 4
    done = kernel.ticket(asked["id"], "applied", 1237)
    panel.say(kernel.status_message(tickets=[done]))
    expect(dialog.locator(".nbp-ticket")).to_have_text("✓ queued 1 236, applied at step 1 237")


def test_a_new_series_is_tried_on_the_record_and_armed(panel: PanelPage) -> None:
    panel.say(kernel.selection_message(series=[CONV]))
    dialog = opened(panel)
    expect(dialog.get_by_label("Module")).to_have_value("block.conv3")
    expect(dialog.get_by_label("Quantity")).to_have_value("grad_norm")
    number = dialog.get_by_label("Number", exact=True)
    panel.page.wait_for_function("sent.some((m) => m.type === 'try_break' && m.number === null)")
    tried = {"module": CONV[0], "quantity": CONV[1], "now": 0.0138, "usual": 0.0061}
    panel.say(breaks(trial={**tried, "steps": [], "n_steps": None}))
    trial = dialog.locator(".nbp-trial")
    expect(trial).to_have_text("now 0.0138, usually 0.0061.")  # before a number is typed
    panel.picture("break-new-series")
    number.fill("0.02")
    panel.page.wait_for_function("sent.some((m) => m.type === 'try_break' && m.number === 0.02)")
    panel.say(breaks(trial={**tried, "steps": [3, 6, 118, 640], "n_steps": 4}))
    expect(trial).to_have_text(
        "now 0.0138, usually 0.0061. Would have paused 4 times so far: steps 3, 6, 118, 640"
    )
    panel.say(breaks(trial={**tried, "steps": [], "n_steps": 0}))
    expect(trial).to_contain_text("Would not have paused so far.")
    dialog.get_by_label("before the update").check()
    number.press("Enter")
    asked = panel.wait_sent("break")
    fields = ("kind", "module", "quantity", "sign", "number", "for_rows", "before")
    assert [asked[name] for name in fields] == ["series", *CONV, ">", 0.02, 1, "update"]
    panel.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    panel.page.wait_for_function("sent.findLast((m) => m.type === 'try_break').quantity === ''")


def test_a_series_that_is_measured_seldom_says_so_and_one_that_is_not_is_attached(
    panel: PanelPage,
) -> None:
    panel.say(kernel.status_message(attached=[("head.fc1", "zero_fraction", "every(10)")]))
    dialog = opened(panel)
    dialog.get_by_label("Module").select_option("head.fc1")
    dialog.get_by_label("Quantity").select_option("zero_fraction")
    trial = dialog.locator(".nbp-trial")
    expect(trial).to_have_text(
        "head.fc1 · zero_fraction is measured every(10): checked at those steps."
    )
    add = panel.action("add-break")
    expect(add).to_have_text("Add")
    dialog.get_by_label("Module").select_option("stem.conv1")
    dialog.get_by_label("Quantity").select_option("zero_fraction")
    expect(add).to_have_text("Attach and arm")
    add.click()
    assert dialog.get_by_label("Number", exact=True).get_attribute("aria-invalid") == "true"
    expect(trial).to_have_text("a number is needed")
    assert panel.sent("attach") == []
    dialog.get_by_label("Number", exact=True).fill("0.5")
    add.click()
    attach = panel.wait_sent("attach")
    assert (attach["where"], attach["quantity"]) == (["stem.conv1"], "zero_fraction")
    assert panel.wait_sent("break")["module"] == "stem.conv1"


@pytest.mark.parametrize("kind", ["step", "alert", "nan", "error"])
def test_the_other_kinds_ask_for_what_they_need(kind: str, panel: PanelPage) -> None:
    panel.say(breaks())
    dialog = opened(panel)
    dialog.locator(f"button[data-kind={kind}]").click()
    if kind == "step":
        field = dialog.get_by_label("Step")
        expect(field).to_have_value("1340")
        field.fill("-3")
        panel.action("add-break").click()
        expect(dialog.locator(".nbp-trial")).to_have_text("a whole number from 0 is needed")
        field.fill("2 000")
    if kind == "alert":
        dialog.get_by_label("Alert rule").select_option("dead_units")
    panel.action("add-break").click()
    asked = panel.wait_sent("break")
    assert asked["kind"] == kind
    assert asked["number"] == (2000 if kind == "step" else 0)
    assert asked["rules"] == (["dead_units"] if kind == "alert" else [])


def test_the_level_in_the_lines_is_dragged_and_moved_by_arrows(panel: PanelPage) -> None:
    draw(panel)
    panel.say(breaks(HIGH, {**AT, "armed": True}))
    flag = panel.page.locator(".nbp-level-flag")
    expect(flag).to_have_text("pause > 0.1")
    box = flag.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    panel.page.mouse.move(x, y + 30, steps=4)
    panel.picture("break-level")
    panel.page.mouse.up()
    number = panel.wait_sent("edit_break")["number"]
    assert 0 < number < 0.1
    assert float(f"{number:.3g}") == number
    panel.say(breaks({**HIGH, "number": number}))
    flag.focus()
    panel.page.keyboard.press("ArrowUp")
    assert panel.wait_sent("edit_break", 2)["number"] == pytest.approx(number * 1.01)
    panel.say(breaks({**HIGH, "armed": False}))
    expect(flag).to_have_count(0)


def test_a_level_beyond_the_axis_is_an_arrow_at_its_edge(panel: PanelPage) -> None:
    draw(panel)
    panel.say(breaks({**HIGH, "number": 1e6}))
    expect(panel.page.locator(".nbp-level-flag")).to_have_text("↑ pause > 1e6")
    expect(panel.page.locator(".nbp-level")).to_be_hidden()


def test_held_the_cursor_moves_there_once_and_keys_go_on(panel: PanelPage) -> None:
    draw(panel)
    can = {"pause": "already paused", "resume": "", "step": "", "stop": ""}
    panel.say(kernel.status_message(state="paused", step=213, can=can))
    panel.say(breaks({**HIGH, "pauses": True}, paused=PAUSED))
    cursor = panel.page.locator(".nbp-plot:has(.nbp-lines) .nbp-cursor")
    expect(cursor).to_be_visible()
    x = panel.x_of_step(panel.lines, 212)
    assert f"translate({x:.1f}px" in (cursor.get_attribute("style") or "")
    panel.root.focus()
    panel.page.keyboard.press(".")
    assert panel.wait_sent("control")["action"] == "step"
    panel.page.keyboard.press("b")
    expect(panel.page.get_by_role("dialog", name="Pause when")).to_be_visible()
    panel.page.keyboard.press("Escape")
    panel.say(breaks(HIGH))
    panel.say(kernel.status_message())
    expect(panel.page.locator(".nbp-paused")).to_be_hidden()
    expect(panel.action("pause")).to_have_text("Pause")


def test_a_traceback_is_text_below_the_bar_and_unfolds(panel: PanelPage) -> None:
    error = "RuntimeError: <img src=x onerror=fail()> is no size"
    text = f'Traceback:\n  File "train.py", line 3\n{error}\n'
    panel.say(kernel.status_message(state="failed"))
    panel.say(breaks(traceback=text))
    words = panel.page.locator(".nbp-raised-words")
    expect(words).to_have_text(error)
    whole = panel.page.locator(".nbp-traceback")
    expect(whole).to_be_hidden()
    panel.action("traceback").click()
    expect(whole).to_contain_text("train.py")
    assert panel.page.locator(".nbp-raised img").count() == 0
    panel.picture("break-raised")
    panel.say(breaks())
    expect(whole).to_be_hidden()


def test_an_opened_record_has_no_flag(panel: PanelPage) -> None:
    panel.say(kernel.model_message(live=False))
    panel.say(breaks(live=False))
    expect(panel.action("breaks")).to_be_hidden()
    panel.root.focus()
    panel.page.keyboard.press("b")
    expect(panel.page.get_by_role("dialog")).to_have_count(0)


def test_while_it_is_held_a_look_at_its_module_is_one_click_in_the_bar(panel: PanelPage) -> None:
    in_bar = panel.action("look-paused")
    expect(in_bar).to_be_hidden()
    panel.say(breaks({**HIGH, "pauses": True}, paused=PAUSED))
    expect(in_bar).to_have_attribute(
        "title",
        "Keep input, output, gradient, weight and update of block.conv3 at the next step, "
        "when training continues (l)",
    )
    in_bar.click()
    assert panel.wait_sent("look")["module"] == CONV[0]
    expect(in_bar).to_have_text("Looking …")
    panel.say(breaks({**NAN, "pauses": True}, paused=PAUSED))
    expect(in_bar).to_have_attribute("aria-disabled", "true")
    panel.row("head.fc1").click()
    in_bar.click()
    assert panel.wait_sent("look", 2)["module"] == "head.fc1"


def test_a_row_of_the_tree_has_a_flag_where_a_breakpoint_is_armed(panel: PanelPage) -> None:
    def flag(module: str) -> Locator:
        return panel.row(module).locator(".nbp-row-flag")

    panel.say(breaks(HIGH, SEVERE))
    expect(flag("block.conv3")).to_be_visible()
    expect(flag("block")).to_be_hidden()
    expect(panel.row("block.conv3")).to_have_attribute(
        "title", re.compile("pauses at block.conv3 · grad_norm > 0.1$")
    )
    panel.picture("break-flag")
    panel.row("block").locator(".nbp-fold").click()
    expect(flag("block")).to_be_visible()
    panel.say(breaks({**HIGH, "armed": False}))
    expect(flag("block")).to_be_hidden()
