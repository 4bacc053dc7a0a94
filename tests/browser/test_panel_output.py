"""The last lines of a training's output in the drawer: escaped, followed, and offered."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_page import PanelPage, introduce


def output(*lines: str, **changes: Any) -> dict[str, Any]:
    rows = [[10 * k, line] for k, line in enumerate(lines)]
    return {
        "v": 1, "type": "output", "live": True, "kept": True, "problem": "", "lines": rows
    } | changes  # fmt: skip


def drawer(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("region", name="Output")


def log(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("log", name="Last lines")


def opened(panel: PanelPage, *lines: str) -> PanelPage:
    panel.say(output(*lines))
    panel.action("output").click()
    return panel


def test_lines_are_sent_while_the_drawer_is_open_and_shown_with_their_steps(
    panel: PanelPage,
) -> None:
    expect(panel.action("output")).to_be_hidden()
    opened(panel)
    assert panel.wait_sent("show_output")["on"] is True
    expect(drawer(panel)).to_contain_text("Nothing is printed yet.")
    panel.say(output("epoch 1", "  indented"))
    expect(drawer(panel)).to_contain_text("the last 2 lines")
    assert log(panel).locator(".nbp-output-line").all_inner_texts() == [
        "0\nepoch 1",
        "10\n  indented",
    ]
    log(panel).press("Escape")
    expect(drawer(panel)).to_be_hidden()
    assert panel.wait_sent("show_output", 2)["on"] is False


def test_what_is_printed_is_text_and_never_run(panel: PanelPage) -> None:
    hostile = "<img src=x onerror=hacked=1>"
    opened(panel, hostile)
    expect(log(panel)).to_contain_text(hostile)
    panel.wait_frame()
    assert panel.page.evaluate("window.hacked") is None


def test_who_is_at_the_end_follows_and_who_has_scrolled_up_stays(panel: PanelPage) -> None:
    many = [f"line {k}" for k in range(200)]
    opened(panel, *many)
    at = "(node) => node.scrollHeight - node.scrollTop - node.clientHeight"
    assert log(panel).evaluate(at) <= 1
    panel.say(output(*many[1:], "line 200"))
    expect(log(panel)).to_contain_text("line 200")
    assert log(panel).evaluate(at) <= 1
    log(panel).evaluate("(node) => { node.scrollTop = 40; }")
    panel.say(output(*many[2:], "line 201", "line 202"))
    expect(log(panel)).to_contain_text("line 202")
    assert log(panel).evaluate("(node) => node.scrollTop") == 40


def test_where_none_is_kept_it_is_offered_where_there_is_room(bare: PanelPage) -> None:
    panel = introduce(bare.show(1200))
    panel.say(output(kept=False))
    panel.action("output").click()
    expect(drawer(panel)).to_contain_text("What the training prints is not kept yet.")
    panel.action("keep-output").click()
    panel.wait_sent("keep_output")
    panel.say(output("a line"))
    expect(panel.action("keep-output")).to_be_hidden()
    panel.say(output("a line", problem="sys.stderr is not kept: TypeError"))
    expect(drawer(panel)).to_contain_text("the last line · sys.stderr is not kept: TypeError")
    narrow = introduce(bare.show(880))
    narrow.say(output(kept=False))
    expect(narrow.action("output")).to_be_hidden()
    narrow.say(output(kept=False, live=False))
    expect(narrow.action("output")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 640, 1100])
def test_a_long_line_wraps_at_any_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = opened(introduce(bare.show(width, theme)), "step 1: loss 0.5", "x" * 390)
    expect(log(panel)).to_contain_text("xxx")
    assert log(panel).evaluate("(node) => node.scrollWidth <= node.clientWidth + 1")
    assert panel.root.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    panel.picture(f"output-{width}-{theme}")
    assert panel.errors == []
