"""The heat map as a ratio to another run, and the drawer of where they part."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.compare_messages import (
    CONV3,
    LOSS,
    OTHERS,
    ROWS,
    compared,
    divided,
    drawer,
    parting_message,
    ratio_message,
    ratios,
    tells,
    wait_chosen,
)
from tests.browser.panel_page import PanelPage, introduce


def wait_in_sight(panel: PanelPage, chip: Locator) -> None:
    """Wait until a chip stands on the line of chips that is seen."""
    panel.page.wait_for_function(
        """(chip) => chip.getBoundingClientRect().top
          < chip.parentNode.getBoundingClientRect().bottom - 4""",
        arg=chip.element_handle(),
    )


@pytest.mark.parametrize(
    ("width", "theme"), [(880, "light"), (880, "dark"), (1280, "dark"), (640, "light")]
)
def test_the_heat_map_shows_the_ratio_to_one_run_with_flags_and_the_drawer_where_they_part(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = divided(introduce(bare.show(width, theme)))
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])
    options = panel.page.locator("[data-action=heat-options]")
    expect(options).to_have_text("ratio to digits-cnn-8")
    chosen = panel.page.locator(".nbp-quantities [aria-pressed=true]")
    wait_in_sight(panel, chosen)
    foot = panel.page.locator(".nbp-parting")
    told = "Differs from digits-cnn-8 at step 412: block.conv3 · grad_norm ×2.1"
    expect(foot).to_contain_text(told)
    words = foot.locator("[role=status]")
    assert words.evaluate("(node) => node.scrollWidth <= node.clientWidth"), "a sentence is cut"
    panel.action("partings").click()
    rows = drawer(panel).locator(".nbp-parted-rows .nbp-parted")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("block.conv3")
    expect(rows.nth(0)).to_contain_text("first")
    expect(rows.nth(0)).to_contain_text("412")
    expect(drawer(panel)).to_contain_text("stem.conv1, stem.bn1, block.bn2 stay within ×2")
    panel.picture(f"compare-{width}-{theme}")
    assert panel.errors == []


def test_a_flag_stands_where_a_row_parts(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    row = ROWS.index("block.conv3")
    height = (box[3] - box[1]) / 7
    middle = box[1] + (row + 0.5) * height
    x = round(panel.x_of_step(panel.heat, 412))
    ink = panel.page.evaluate("getComputedStyle(document.querySelector('.nbp-panel')).color")
    red, green, blue = (int(part) for part in re.findall(r"\d+", ink)[:3])
    seen = panel.pixel(panel.heat, x - 0.5, middle)
    assert np.abs(np.subtract(seen[:3], (red, green, blue))).max() < 90, "the line of the flag"
    beside_it = panel.pixel(panel.heat, x - 12, middle)
    assert min(beside_it[:3]) > 150, "pale before it"


def test_a_cell_tells_the_ratio_and_where_its_row_parts(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + (ROWS.index("block.conv3") + 0.5) * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 1000), "y": y})
    tip = panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")
    expect(tip).to_contain_text(re.compile(r"grad_norm  ×[34]"))
    expect(tip).to_contain_text("of digits-cnn-8")
    expect(tip).to_contain_text("diverges at step 412")


def test_what_is_not_measured_in_either_is_hatched(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + 1.5 * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 60), "y": y})
    expect(panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")).to_contain_text("not measured")


def test_values_and_ratio_are_chosen_at_the_heat_map(panel: PanelPage) -> None:
    divided(panel)
    panel.action("heat-options").click()
    panel.page.locator("[data-role=heat-ratio-to] [data-value='']").click()
    wait_chosen(panel, ratio_to="")
    expect(panel.heat).not_to_have_attribute("data-ratio-to", re.compile(""))
    panel.page.locator(f"[data-role=heat-ratio-to] [data-value='{OTHERS[0]}']").click()
    wait_chosen(panel, ratio_to=OTHERS[0])
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])


def test_until_a_ratio_has_come_the_values_stand(panel: PanelPage) -> None:
    divided(panel)
    panel.say(kernel.selection_message(home="weight_norm", others=OTHERS, ratio_to=OTHERS[0]))
    expect(panel.heat).not_to_have_attribute("data-ratio-to", re.compile(""))
    expect(panel.page.locator(".nbp-parting")).to_be_hidden()


def test_signed_quantities_are_apart_in_spreads_and_the_bar_says_so(panel: PanelPage) -> None:
    divided(panel)
    panel.say(*ratio_message(3 * ratios(), signed=True, limit=3.0))
    panel.wait_frame()
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + (ROWS.index("block.conv3") + 0.5) * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 1000), "y": y})
    tip = panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")
    expect(tip).to_contain_text(re.compile(r"grad_norm  \+1\.\d+ spreads"))
    panel.picture("compare-spreads")


def test_a_click_in_the_drawer_goes_to_module_and_step(panel: PanelPage) -> None:
    divided(panel, window=(0, 300)).action("partings").click()
    expect(drawer(panel)).to_contain_text("this run ÷ digits-cnn-8, steps in view")
    rows = drawer(panel).locator(".nbp-parted-rows .nbp-parted")
    rows.nth(0).focus()
    rows.nth(0).press("ArrowDown")
    rows.nth(1).press("Enter")
    expect(panel.row("block.bn3")).to_have_attribute("aria-selected", "true")
    first = (431 - 150, 431 + 150)
    wait_chosen(panel, window=first, series=[[*LOSS], [*CONV3], ["block.bn3", "grad_norm"]])
    drawer(panel).get_by_role("button", name="show").nth(0).click()
    expect(panel.row("block.conv3")).to_have_attribute("aria-selected", "true")


def test_both_numbers_are_edited_in_place_and_refused_in_words(panel: PanelPage) -> None:
    divided(panel).action("partings").click()
    factor = drawer(panel).get_by_role("textbox", name="factor")
    factor.fill("1")
    expect(drawer(panel)).to_contain_text("a number above 1 is needed")
    factor.press("Enter")
    assert all(one["apart"] == [2, 10] for one in panel.sent("selection"))
    factor.fill("3")
    factor.press("Escape")
    expect(factor).to_have_value("2")
    factor.fill("1.5")
    factor.press("Enter")
    wait_chosen(panel, apart=[1.5, 10])
    rows = drawer(panel).get_by_role("textbox", name="rows")
    rows.fill("2.5")
    expect(drawer(panel)).to_contain_text("a whole number above 0 is needed")
    rows.fill("25")
    rows.press("Enter")
    wait_chosen(panel, apart=[1.5, 25])


def test_runs_that_stay_together_say_so(panel: PanelPage) -> None:
    divided(panel)
    told = "They stay within ×2 at all 7 modules"
    panel.say(parting_message(found=[], within=ROWS, text=told))
    expect(panel.page.locator(".nbp-parting")).to_contain_text(told)
    panel.action("partings").click()
    expect(drawer(panel)).to_contain_text(told)
    expect(drawer(panel).locator(".nbp-parted-rows .nbp-parted")).to_have_count(0)
    panel.page.keyboard.press("Escape")


def test_a_run_that_cannot_be_compared_says_why_in_the_foot(panel: PanelPage) -> None:
    compared(panel)
    tells(panel, refused={OTHERS[0]: "epochs are not recorded in digits-cnn-8"})
    foot = panel.page.locator(".nbp-parting [role=status]")
    expect(foot).to_have_text("epochs are not recorded in digits-cnn-8")
    expect(panel.action("partings")).to_be_hidden()


def test_who_is_left_out_of_a_group_is_told_beside_where_the_others_part(panel: PanelPage) -> None:
    divided(panel, grouped=True)
    why = "digits-cnn-5 is left out: cannot read runs/digits-cnn-5.zarr/scalars/every_1/grad_norm"
    tells(panel, refused={OTHERS[1]: why})
    foot = panel.page.locator(".nbp-parting [role=status]")
    expect(foot).to_contain_text("Differs from")
    expect(foot).to_contain_text(why)
    panel.action("partings").click()
    expect(drawer(panel)).to_contain_text(why)
    panel.picture("compare-left-out")
    panel.page.keyboard.press("Escape")


def test_the_ratio_may_be_to_a_group(panel: PanelPage) -> None:
    divided(panel, grouped=True)
    expect(panel.page.locator("[data-action=heat-options]")).to_have_text("ratio to the group of 2")
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])
