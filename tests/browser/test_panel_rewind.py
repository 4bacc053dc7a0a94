"""Back to a checkpoint by a click: what is asked for, why not, and the branch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from notebook_probe.alerts import Alert
from notebook_probe.explorer.parts.history import AMID
from tests.browser import panel_messages as kernel
from tests.browser.alert_messages import alerts_message
from tests.browser.history_messages import MUST, RESTORES, branched, history, way
from tests.browser.panel_messages import Message
from tests.browser.panel_page import PanelPage

THEMES = ["light", "dark"]
WIDTHS = [640, 880, 1280]
PRESETS = ["default", "alerts", "activations"]
CHECKPOINTS = range(100, 801, 100)
LOSS, NORM = ("(root)", "loss"), ("conv3", "grad_norm")


def alert(step: int, rule: str = "loss_spike") -> Alert:
    text = f"the model: the loss is 2.9, 11 times its usual value, at step {step}"
    return Alert(rule, step, text, ("(root)",), ("loss",), severity="severe")


def cells(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).lognormal(size=(len(kernel.WEIGHTED), n))


def lines(first: int, last: int, level: float, **options: Any) -> tuple[Any, list[bytes]]:
    steps = np.arange(first, last)
    noise = np.random.default_rng(first).lognormal(0, 0.1, len(steps))
    return kernel.lines_message(
        {LOSS: (steps, level * noise), NORM: (steps, 5 * level * noise)}, **options
    )


def shown(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    """Held at step 842, after alerts at 341 and 400."""
    bare.show(width, theme)
    heat = kernel.heat_message(cells(842), kernel.WEIGHTED, last_step=841)
    of_lines = lines(0, 842, 1.0)
    bare.say_all(*words(), heat, of_lines, history(*CHECKPOINTS, way=way()))
    for message, _ in (heat, of_lines):
        bare.wait_painted(message)
    return bare


def words() -> list[Message]:
    """Messages without frames of a run that is held at step 842."""
    presets = [{"name": name, "about": "", "percent": 1.0} for name in PRESETS]
    probes = {"v": 1, "type": "probes", "n_measured": 100, "step_s": 0.2, "budget": 5.0}
    return [
        kernel.model_message(),
        kernel.status_message(step=842, rate=4.5, state="paused", logged=["loss"]),
        kernel.selection_message(home="grad_norm", series=[LOSS, NORM]),
        alerts_message([alert(341), alert(400)]),
        {**probes, "presets": presets},
    ]


def words_of_branch(step: int = 371) -> list[Message]:
    """Messages without frames of a branch from 300 on that has come to this step."""
    return [
        kernel.status_message(step=step, logged=["loss"]),
        alerts_message([]),
        branched(100, 200, 300),
    ]


def back(panel: PanelPage, step: int = 300) -> Locator:
    panel.page.locator(f'.nbp-diamond[data-step="{step}"]').click()
    return panel.page.get_by_role("dialog", name=f"Back to step {step}")


def say_branch(panel: PanelPage, step: int = 371) -> None:
    """A branch from 300 on has come to this step; the line that was left to 842."""
    panel.say(kernel.status_message(step=step, logged=["loss"]))
    panel.say(alerts_message([]))
    panel.draw(*kernel.heat_message(cells(step), kernel.WEIGHTED, last_step=step - 1, seq=5))
    panel.draw(*lines(0, step, 0.5, seq=6))
    heat, buffers = kernel.heat_message(cells(842), kernel.WEIGHTED, last_step=841)
    panel.say({**heat, "type": "left_heat"}, buffers)
    message, buffers = lines(300, 842, 1.0)
    panel.say({**message, "type": "left_lines"}, buffers)
    panel.say(branched(100, 200, 300))


def test_the_click_asks_for_all_that_stands_there(panel: PanelPage) -> None:
    dialog = back(panel)
    expect(dialog).to_contain_text(f"{RESTORES} are restored.")
    expect(dialog).to_contain_text("stay in the record, as branch 1: 542 steps, about 2\u202fmin")
    expect(dialog).to_contain_text("5 before the first alert")
    dialog.get_by_role("button", name="denser").click()
    expect(dialog.get_by_label("Preset")).to_have_value("alerts")
    dialog.get_by_label("Until step").fill("420")
    dialog.get_by_label("Learning rate").fill("3e-3")
    dialog.get_by_role("button", name="Rewind and run").click()
    asked = panel.wait_sent("rewind")
    del asked["id"]
    assert asked == {
        "v": 1,
        "type": "rewind",
        "step": 300,
        "preset": "alerts",
        "schedule": "every(1)",
        "until": 420,
        "rate": 0.003,
        "pause_at": 336,
    }


def test_paused_in_the_midst_of_a_step_it_says_what_waits_and_what_does_not(
    panel: PanelPage,
) -> None:
    panel.say(history(*CHECKPOINTS, way=way(waits=AMID)))
    dialog = back(panel)
    expect(dialog.locator("[data-role=waits]")).to_have_text(AMID)
    panel.picture("rewind-amid")
    panel.say(history(*CHECKPOINTS, way=way()))
    expect(dialog.locator("[data-role=waits]")).to_be_hidden()
    expect(dialog.get_by_role("button", name="Rewind and run")).to_be_visible()


def test_as_before_asks_for_nothing_else(panel: PanelPage) -> None:
    dialog = back(panel)
    dialog.get_by_label("Pause", exact=True).uncheck()
    panel.page.keyboard.press("Enter")
    asked = panel.wait_sent("rewind")
    assert (asked["preset"], asked["until"], asked["rate"], asked["pause_at"]) == (
        "",
        None,
        None,
        None,
    )


def test_the_ticket_says_when_and_then_there_is_nothing_left_to_ask(panel: PanelPage) -> None:
    dialog = back(panel)
    dialog.get_by_role("button", name="Rewind and run").click()
    id = panel.wait_sent("rewind")["id"]
    panel.say(kernel.status_message(step=842, tickets=[kernel.ticket(id, "queued")]))
    expect(dialog).to_contain_text("queued 1\u202f236")
    applied = kernel.ticket(id, "applied", 842, "rewound to 300")
    panel.say(kernel.status_message(step=300, tickets=[applied]))
    expect(dialog).to_contain_text("✓ queued 1\u202f236, applied at step 842")
    expect(dialog.get_by_role("button", name="Rewind and run")).to_be_hidden()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_the_open_popover_goes_with_its_checkpoint_and_tells_of_the_branch(
    panel: PanelPage,
) -> None:
    dialog = back(panel)
    dialog.get_by_role("button", name="Rewind and run").click()
    id = panel.wait_sent("rewind")["id"]
    applied = kernel.ticket(id, "applied", 842, "rewound to 300")
    panel.say(kernel.status_message(step=300, tickets=[applied]))
    panel.say(history(*CHECKPOINTS))  # the run that was left has no way back any more
    expect(dialog.get_by_text("in a cell")).to_be_hidden()
    say_branch(panel)
    expect(dialog).to_contain_text(
        "Branch 2 continues from step 300; branch 1 stays, to step 842. In cells it is loop.run."
    )
    expect(dialog).to_contain_text("applied at step 842")
    caret = dialog.locator(".nbp-caret").bounding_box()
    diamond = panel.page.locator('.nbp-diamond[data-key="300"]').bounding_box()
    assert caret is not None
    assert diamond is not None
    middle = diamond["x"] + diamond["width"] / 2
    assert caret["x"] <= middle <= caret["x"] + caret["width"]
    panel.picture("rewind-applied")


def test_a_refusal_stands_beside_the_button_in_words(panel: PanelPage) -> None:
    dialog = back(panel)
    dialog.get_by_role("button", name="Rewind and run").click()
    id = panel.wait_sent("rewind")["id"]
    why = "kept/step_300.pt does not fit Digits: missing there: conv4.weight"
    refused = kernel.ticket(id, "refused", text=why)
    panel.say(kernel.status_message(step=842, state="paused", tickets=[refused]))
    expect(dialog.locator(".nbp-ticket")).to_have_text(why)
    expect(dialog.get_by_role("button", name="Rewind and run")).to_be_visible()


def test_what_is_no_number_is_not_sent(panel: PanelPage) -> None:
    dialog = back(panel)
    dialog.get_by_label("Learning rate").fill("fast")
    dialog.get_by_role("button", name="Rewind and run").click()
    expect(dialog.locator(".nbp-ticket")).to_have_text("a number is needed there")
    assert panel.sent("rewind") == []


def test_a_loop_in_a_blocking_cell_must_be_held_first(panel: PanelPage) -> None:
    panel.say(history(*CHECKPOINTS, way=way(MUST)))
    dialog = back(panel)
    act = dialog.get_by_role("button", name="Rewind and run")
    expect(act).to_have_attribute("title", MUST)
    expect(dialog.locator(".nbp-ticket")).to_have_text(MUST)
    act.click(force=True)
    assert panel.sent("rewind") == []
    expect(dialog.locator("pre")).to_have_text('run = loop.rewind(300, probes="default")')
    panel.say(history(*CHECKPOINTS, way=way()))
    expect(dialog.locator(".nbp-ticket")).to_have_text("")
    act.click()
    panel.wait_sent("rewind")


def test_only_evaluating_asks_for_no_branch(panel: PanelPage) -> None:
    dialog = back(panel)
    dialog.get_by_role("button", name="only evaluate it").click()
    asked = panel.wait_sent("evaluate")
    assert (asked["step"], asked["preset"]) == (300, "")
    assert panel.sent("rewind") == []


def test_the_branch_leaves_the_line_that_goes_on_in_grey(panel: PanelPage) -> None:
    say_branch(panel)
    strip = panel.page.locator(".nbp-history")
    expect(strip).to_contain_text("before, to step 842")
    expect(strip).to_contain_text("now, from step 300")
    expect(panel.page.locator(".nbp-left-mark")).to_have_count(5)
    for node in panel.page.locator(".nbp-left-mark").all():
        expect(node).to_be_disabled()
    expect(panel.page.locator(".nbp-branch")).to_have_text("branch 2")
    expect(panel.page.locator(".nbp-no-alerts")).to_contain_text(
        "No alerts on this branch; 4 before"
    )
    panel.say(alerts_message([alert(310)]))
    count = panel.action("alerts")
    expect(count).to_have_text("1 alert · 4 alerts before")
    panel.say(history(*CHECKPOINTS, way=way()))
    expect(count).to_have_text("1 alert")
    expect(panel.page.locator(".nbp-branch")).to_be_hidden()
    expect(strip).not_to_contain_text("before")


def test_the_alerts_before_are_listed_and_marked_where_both_are_asked_for(panel: PanelPage) -> None:
    say_branch(panel)
    both, count = panel.action("both"), panel.action("alerts")
    expect(both).to_be_hidden()  # nothing is known of them yet
    panel.say(left_alerts([alert(341), alert(400, "mine")]))
    expect(count).to_be_hidden()
    both.click()
    drawer = panel.page.locator(".nbp-drawer")
    expect(drawer.locator(".nbp-alert")).to_have_count(2)
    expect(drawer.locator(".nbp-tag:visible")).to_have_text(["before", "before"])
    expect(panel.page.locator(".nbp-no-alerts")).to_contain_text("No alerts on this branch")
    assert is_marked(panel, 400)
    panel.picture("alerts-both-none")
    panel.say(alerts_message([alert(310)]))
    expect(drawer.locator(".nbp-alert-step")).to_have_text(["310", "341", "400"])
    expect(drawer.locator(".nbp-alerts-head")).to_contain_text("1 alert, 1 cause · 2 alerts before")
    panel.picture("alerts-both")
    both.click()
    expect(both).to_have_text("show both")
    expect(drawer.locator(".nbp-alert-step")).to_have_text(["310"])
    assert not is_marked(panel, 400)
    both.click()
    panel.say(left_alerts([]))
    expect(both).to_be_hidden()
    expect(drawer.locator(".nbp-alert-step")).to_have_text(["310"])


def left_alerts(alerts: list[Alert]) -> dict[str, Any]:
    told = alerts_message(alerts)
    return {"v": 1, "type": "left", "rows": told["rows"], "findings": told["findings"]}


def is_marked(panel: PanelPage, step: int) -> bool:
    """Whether there is red below the axis of the heat map at a step."""
    panel.wait_frame()
    x, y = panel.x_of_step(panel.heat, step), axis_of(panel.heat) + 6
    red, green, _, alpha = panel.pixel(panel.heat, x, y)
    return alpha > 60 and red > green + 60


def axis_of(plot: Locator) -> float:
    """Where the step axis stands in a plot: below the strip of history, where there is one."""
    return float(plot.evaluate("(canvas) => canvas.clientHeight")) - 24


def test_both_plots_keep_what_was_left_paler_from_the_fork_on(panel: PanelPage) -> None:
    say_branch(panel)
    lines, heat = panel.lines, panel.heat
    expect(lines).to_have_attribute("data-left", "[false,false,true,true]")
    expect(lines).to_have_attribute("data-last-step", "[370,370,841,841]")
    expect(heat).to_have_attribute("data-left-to", "841")
    panel.wait_frame()
    strength = [panel.pixel(heat, panel.x_of_step(heat, step), 30.0)[3] for step in (200, 600)]
    assert strength == [255, pytest.approx(0.38 * 255, abs=1)]


def test_under_the_pointer_a_paler_cell_says_its_step_and_of_which_line_it_is(
    panel: PanelPage,
) -> None:
    say_branch(panel)
    expect(panel.heat).to_have_attribute("data-left-to", "841")
    panel.wait_frame()
    tip = panel.page.locator(".nbp-plot:has(canvas.nbp-heat) .nbp-tip")
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 600.5), "y": 30})
    expect(tip).to_contain_text("step 600")
    expect(tip).to_contain_text("on the parent branch, left at step 300")
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 200.5), "y": 30})
    expect(tip).to_contain_text("step 200")
    expect(tip).not_to_contain_text("left at step")


def test_looks_are_squares_and_checkpoints_diamonds_on_both_axes(panel: PanelPage) -> None:
    events = [
        (200.0, "look", "look at conv1"),
        (204.0, "checkpoint", "checkpoint of step 204"),  # too near: the look is heavier
        (500.0, "checkpoint", "checkpoint of step 500"),
        (600.0, "attach", "weight_norm at conv1"),
    ]
    panel.say(alerts_message([]))
    panel.draw(*lines(0, 842, 1.0, events=events, seq=9))
    panel.wait_frame()
    for plot in (panel.heat, panel.lines):
        box = plot.bounding_box()
        assert box is not None
        bottom = axis_of(plot)
        outlined = {}
        for step in (200, 500, 600):
            x = panel.x_of_step(plot, step)
            spots = {"corner": (-3.5, 8.5), "tip": (0, 9.3), "middle": (0, 4)}
            outlined[step] = {
                name
                for name, (dx, dy) in spots.items()
                if is_blue(panel.pixel(plot, x + dx, bottom + dy))
            }
        assert outlined[200] == {"corner"}, plot
        assert outlined[500] >= {"tip"}, plot
        assert "middle" not in outlined[500]
        assert outlined[600] == {"middle"}, plot
        panel.page.mouse.move(box["x"] + panel.x_of_step(plot, 200), box["y"] + bottom + 5)
        tip = panel.page.locator(".nbp-tip:visible")
        expect(tip).to_contain_text("look at conv1")
        expect(tip).to_contain_text("checkpoint of step 204")
        panel.page.mouse.move(box["x"] + panel.x_of_step(plot, 500), box["y"] + bottom + 5)
        expect(tip).to_contain_text("checkpoint of step 500")
    panel.picture("marks-light-880")


def is_blue(pixel: tuple[int, int, int, int]) -> bool:
    red, _, blue, alpha = pixel
    return alpha > 120 and blue > red + 60


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_it_is_drawn_at_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = shown(bare, width, theme)
    dialog = back(panel)
    dialog.get_by_role("button", name="denser").click()
    inside, around = dialog.bounding_box(), panel.root.bounding_box()
    assert inside is not None
    assert around is not None
    assert around["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    panel.picture(f"rewind-{theme}-{width}")
    panel.page.keyboard.press("Escape")
    say_branch(panel)
    panel.wait_frame()
    panel.picture(f"rewind-branch-{theme}-{width}")
    assert panel.errors == []


def ended(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    """The loop has ended at 842; its run is still open."""
    shown(bare, width, theme)
    bare.say(kernel.status_message(step=842, state="idle", logged=["loss"]))
    bare.say(history(*CHECKPOINTS, way=way(until=842)))
    return bare


@pytest.mark.parametrize("width", [700, 1100, 1600])
@pytest.mark.parametrize("theme", THEMES)
def test_a_loop_that_has_ended_continues_in_the_background_by_a_click(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = ended(bare, width, theme)
    dialog = back(panel)
    expect(dialog).to_contain_text("The loop has ended: it trains to step 842 again.")
    evaluate = dialog.get_by_role("button", name="only evaluate it")
    expect(evaluate).to_have_attribute("aria-disabled", "true")
    expect(evaluate).to_have_attribute("title", re.compile("nbp.recompute"))
    panel.picture(f"rewind-ended-{width}-{theme}")
    dialog.get_by_role("button", name="Rewind and continue in the background").click()
    assert panel.wait_sent("rewind")["step"] == 300
    panel.say(
        kernel.status_message(
            step=842,
            state="training",
            progress="rewinding to step 300",
            logged=["loss"],
        )
    )
    expect(panel.root.locator(".nbp-progress")).to_have_text("rewinding to step 300")


def test_the_age_of_a_checkpoint_grows_while_its_dialog_is_open(bare: PanelPage) -> None:
    panel = ended(bare)
    dialog = back(panel)
    facts = dialog.locator("header .nbp-soft")
    before = facts.inner_text()
    later = "() => { const now = Date.now; Date.now = () => now() + 10 * 60_000; }"
    panel.page.evaluate(later)
    panel.say(kernel.status_message(step=842, state="idle", logged=["loss"]))
    assert facts.inner_text() != before
    panel.forget()  # its clock is late


def test_a_checkpoint_at_the_end_of_training_says_that_nothing_is_left(bare: PanelPage) -> None:
    panel = ended(bare)
    panel.say(history(*CHECKPOINTS, way=way(until=800)))
    act = back(panel, 800).locator('[data-action="rewind"]')
    expect(act).to_have_attribute("aria-disabled", "true")
    expect(act).to_have_attribute("title", "Training ended at this step: nothing is left to train")


@pytest.mark.slow
def test_the_branch_in_the_bar_is_whole_or_out_of_sight(bare: PanelPage) -> None:
    seen = set()
    for width in range(640, 1100, 20):
        panel = bare.show(width)
        panel.say_all(
            *words(), branched(100, 200, 300), *words_of_branch()
        )  # no plots: a bar alone
        told = panel.page.evaluate(
            """() => {
              const node = document.querySelector(".nbp-branch");
              const range = document.createRange();
              range.selectNodeContents(node);
              const [text, box] = [range.getBoundingClientRect(), node.getBoundingClientRect()];
              if (text.top >= box.bottom - 1) return "out of sight";
              return text.right <= box.right + 1 ? "whole" : "cut"; }"""
        )
        seen.add(told)
    assert "cut" not in seen
    assert "whole" in seen
