"""The list of other runs at the name in the bar."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.compare_messages import (
    RUNS,
    dialog,
    opened,
    run,
    tells,
    tick,
    wait_chosen,
)
from tests.browser.panel_page import PanelPage, introduce


def test_the_name_opens_the_runs_of_the_folder_newest_first(panel: PanelPage) -> None:
    opened(panel)
    panel.wait_sent("list_runs")
    names = dialog(panel).locator(".nbp-run-rows .nbp-cut:first-of-type")
    expect(names.nth(0)).to_have_text("digits-cnn-8")
    expect(dialog(panel).locator(".nbp-run-rows .nbp-run-row")).to_have_count(6)
    expect(dialog(panel)).to_contain_text("in runs/; ticked ones are drawn over this one")
    row = dialog(panel).locator(".nbp-run-row", has_text="digits-cnn-8")
    expect(row).to_contain_text("1\u202f860")
    expect(row).to_contain_text("0.213")
    expect(row).to_contain_text("lr 1e-3, here 3e-3")
    own = dialog(panel).locator(".nbp-here")
    expect(own).to_contain_text("digits-cnn")
    expect(own).to_contain_text("now")
    expect(own).to_contain_text("this run")


@pytest.mark.parametrize("width", [700, 1100])
def test_automatic_names_of_runs_are_readable_to_the_end(bare: PanelPage, width: int) -> None:
    names = [f"quickstart-20261130-11{minute}59" for minute in (14, 25)]
    panel = introduce(bare.show(width))
    panel.action("runs").click()
    tells(panel, [run(name, 0.2) for name in names])
    for name in names:
        cell = dialog(panel).get_by_text(name, exact=True)
        assert cell.evaluate("(node) => node.scrollWidth <= node.clientWidth")


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1280, "dark"), (640, "light")])
def test_a_tick_draws_a_run_beside_this_one_and_the_bar_counts_them(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = opened(introduce(bare.show(width, theme)))
    tick(panel, "digits-cnn-8").check()
    tick(panel, "digits-cnn-5").check()
    wait_chosen(panel, others=["runs/digits-cnn-8.zarr", "runs/digits-cnn-5.zarr"])
    expect(panel.action("runs")).to_contain_text("+2")
    expect(panel.action("runs")).to_have_attribute(
        "title", re.compile("compared with digits-cnn-8")
    )
    box = panel.page.locator(".nbp-bar").bounding_box()
    assert box is not None
    assert box["height"] < 48
    inside = dialog(panel).locator(".nbp-runs")
    assert inside.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    panel.picture(f"compare-pick-{width}-{theme}")
    tick(panel, "digits-cnn-8").uncheck()
    wait_chosen(panel, others=["runs/digits-cnn-5.zarr"])


def test_at_most_four_runs_stand_beside_one(panel: PanelPage) -> None:
    opened(panel)
    for name in ("digits-cnn-8", "digits-cnn-7", "digits-cnn-5", "digits-cnn-4", "digits-cnn-3"):
        tick(panel, name).click()
    expect(dialog(panel)).to_contain_text("At most 4 other runs: remove one first")
    expect(tick(panel, "digits-cnn-3")).not_to_be_checked()
    wait_chosen(panel, others=[one["run"] for one in RUNS[:4]])


def test_what_is_typed_finds_runs_by_name_and_by_what_they_differ_in(panel: PanelPage) -> None:
    opened(panel)
    search = panel.page.locator("[data-role=find-run]")
    expect(search).to_be_focused()
    rows = dialog(panel).locator(".nbp-run-rows .nbp-run-row")
    search.fill("lr=1e-3")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("digits-cnn-8")
    search.fill("digits-cnn-9")
    expect(rows).to_have_count(0)
    expect(dialog(panel)).to_contain_text("Nothing is called digits-cnn-9; near: digits-cnn-8")


def test_a_path_or_a_url_that_is_typed_is_opened(panel: PanelPage) -> None:
    opened(panel)
    search = panel.page.locator("[data-role=find-run]")
    search.fill("s3://bucket/teacher.zarr")
    expect(panel.action("open-run")).to_have_text("Open s3://bucket/teacher.zarr")
    search.press("Enter")
    wait_chosen(panel, others=["s3://bucket/teacher.zarr"])
    gone = run("teacher", line=[], steps=0, problem="cannot be read: no record at s3://bucket")
    tells(panel, [*RUNS, {**gone, "run": "s3://bucket/teacher.zarr"}])
    row = dialog(panel).locator(".nbp-run-row", has_text="teacher")
    expect(row).to_contain_text("cannot be read: no record at s3://bucket")
    expect(tick(panel, "teacher")).to_be_checked()  # so that it can be taken away


def test_a_record_that_cannot_be_read_stays_with_its_reason(panel: PanelPage) -> None:
    opened(panel)
    row = dialog(panel).locator(".nbp-run-row", has_text="digits-cnn-2")
    expect(row).to_contain_text("cannot be read: written by a newer version")
    expect(tick(panel, "digits-cnn-2")).to_be_disabled()
    unread = run("slow", line=[], steps=0, begun_ms=0)
    tells(panel, [unread])
    expect(dialog(panel).locator(".nbp-run-rows")).to_contain_text("reading …")
    expect(tick(panel, "slow")).to_be_enabled()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({}, "No other run in runs/"),
        ({"listed": False}, "Reading runs/ …"),
        ({"folder": ""}, "are not listed: type a path or a URL"),
        ({"problem": "runs cannot be listed: Permission denied"}, "Permission denied"),
    ],
)
def test_a_list_without_runs_says_why(panel: PanelPage, told: dict[str, Any], says: str) -> None:
    panel.action("runs").click()
    tells(panel, [], **told)
    expect(dialog(panel).locator(".nbp-runs-said")).to_contain_text(says)


def test_the_list_is_used_with_the_keyboard_alone(panel: PanelPage) -> None:
    panel.root.focus()
    panel.page.keyboard.press("r")
    tells(panel)
    search = panel.page.locator("[data-role=find-run]")
    expect(search).to_be_focused()
    search.press("ArrowDown")
    panel.page.keyboard.press("ArrowDown")
    expect(tick(panel, "digits-cnn-7")).to_be_focused()
    panel.page.keyboard.press("Space")
    wait_chosen(panel, others=["runs/digits-cnn-7.zarr"])
    panel.page.keyboard.press("Escape")
    expect(dialog(panel)).to_have_count(0)
    expect(panel.action("runs")).to_be_focused()


def test_a_name_with_markup_is_shown_as_it_is(panel: PanelPage) -> None:
    opened(panel)
    tells(panel, [run("<img src=x onerror=alert(1)>", differs="<b>lr</b>")])
    row = dialog(panel).locator(".nbp-run-rows .nbp-run-row")
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    expect(row).to_contain_text("<b>lr</b>")
    assert panel.errors == []
