"""The quantity of the attach box: found by question, word, symbol or another tool's name."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from notebook_probe.quantities import quantities
from notebook_probe.quantities.define.questions import topic
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

THIN = "\u202f"
PRESETS = [
    {"name": "gradients", "about": "Whether they vanish or explode.", "percent": 6.28},
    {"name": "spectra", "about": "Singular values.", "percent": None},
]


def row(name: str, question: str = "Are my ReLUs dead?", **changes: Any) -> Any:
    base = {
        "name": name,
        "summary": f"About {name}.",
        "needs": ["output"],
        "units": "1",
        "value": "number",
        "question": question,
        "topic": topic(question),
        "formula": "",
        "aliases": [],
        "every_step": False,
        "misfits": [],
    }
    return {**base, **changes}


def own_catalogue() -> Any:
    message = kernel.model_message()
    n = max(message["kinds"]) + 1
    relu = message["kinds"][[one[0] for one in message["modules"]].index("stem.relu1")]
    no_norm = ["" if kind == relu else "needs a ReLU; Conv2d is none" for kind in range(n)]
    rows = [
        row("grad_norm", "Do gradients vanish?", summary="Size of the gradient", formula="‖g‖₂"),
        row("output_rms", "Do gradients vanish?", summary="Usual size of an activation"),
        row("output_quantiles", "Do gradients vanish?", value="vector"),
        row("dead_fraction", summary="Share of dead units", aliases=["DeadNeurons"]),
        row("relu_gap", misfits=no_norm),
        row("own"),
    ]
    return {**message, "quantities": rows}


def built_in() -> Any:
    """All that is built in, as a run lists it."""
    message = kernel.model_message()
    rows = [
        row(
            one.name,
            one.question,
            summary=one.summary,
            formula=one.explained.formula,
            aliases=[*one.aliases],
            value="number" if one.axis is None else "vector",
        )
        for one in quantities.values()
    ]
    return {**message, "quantities": rows}


def shown_with(bare: PanelPage, message: Any, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    bare.say(message)
    known = {"n_measured": 64, "step_s": 0.023, "budget": None, "presets": PRESETS}
    bare.say({"v": 1, "type": "probes", **known})
    bare.say(kernel.status_message(costs={"grad_norm": 4.6}))
    return bare


def shown(bare: PanelPage) -> PanelPage:
    panel = shown_with(bare, own_catalogue())
    panel.row("stem.conv1").click()
    panel.page.locator("[data-role=quantity]").click()
    return panel


def search(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("combobox", name="Find a quantity")


def names(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-pick-name code")


def test_questions_stand_at_the_left_with_counts_presets_first(panel: PanelPage) -> None:
    tabs = panel.page.get_by_role("tab")
    expect(tabs).to_have_text(["Presets2", "Do gradients vanish?3", "Dead units?3"])
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")  # of the quantity of the box
    expect(names(panel)).to_have_text(["grad_norm", "output_rms", "output_quantiles"])
    expect(search(panel)).to_have_attribute(
        "placeholder", "Find 6 quantities: a word, a symbol, another tool’s name"
    )


def test_a_row_is_pressed_while_its_cost_changes(panel: PanelPage) -> None:
    first = panel.page.locator(".nbp-pick").first
    first.hover()
    panel.page.mouse.down()
    panel.say(kernel.status_message(costs={"grad_norm": 5.2}))
    expect(first).to_contain_text(f"5.2{THIN}µs")
    panel.page.mouse.up()
    expect(panel.page.get_by_role("dialog")).to_have_count(0)
    expect(panel.page.locator("[data-role=quantity]")).to_have_text("grad_norm")


def test_a_row_has_name_glyph_places_cost_sentence_and_formula(panel: PanelPage) -> None:
    first = panel.page.locator(".nbp-pick").first
    expect(first).to_have_text(f"grad_norm● at 84.6{THIN}µsSize of the gradient‖g‖₂")
    expect(panel.page.locator(".nbp-pick .nbp-bars")).to_have_count(1)
    expect(
        panel.page.locator(".nbp-pick", has_text="output_quantiles").locator("i")
    ).to_be_visible()


def test_what_does_not_fit_stands_last_with_its_reason(panel: PanelPage) -> None:
    panel.page.get_by_role("tab", name="Dead units?").click()
    expect(names(panel)).to_have_text(["dead_fraction", "own", "relu_gap"])
    last = panel.page.locator(".nbp-pick").last
    expect(last).to_contain_text("needs a ReLU; Conv2d is none")
    last.click(force=True)
    expect(panel.page.get_by_role("dialog")).to_be_visible()
    first = panel.page.locator("[data-role=fitting-first]")
    expect(panel.page.locator("header label", has=first)).to_have_text("what fits stem.conv1 first")
    first.uncheck()
    expect(names(panel)).to_have_text(["dead_fraction", "relu_gap", "own"])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("grad", ["grad_norm"]),
        ("usual size", ["output_rms"]),
        ("‖g‖", ["grad_norm"]),
        ("deadneurons", ["dead_fraction"]),
        ("activation usual", ["output_rms"]),
    ],
)
def test_it_is_found_by_name_sentence_formula_and_alias(
    panel: PanelPage, query: str, found: list[str]
) -> None:
    search(panel).fill(query)
    expect(names(panel).first).to_have_text(found[0])


def test_what_is_not_there_is_told_with_what_comes_near(panel: PanelPage) -> None:
    search(panel).fill("dead_fracton")
    heading = panel.page.locator(".nbp-pick-side > p")
    expect(heading).to_have_text("Nothing is called dead_fracton; near: dead_fraction, DeadNeurons")
    search(panel).fill("zzz")
    expect(heading).to_have_text("Nothing is called zzz")


def test_among_all_that_is_built_in_dropped_is_near_dead_fraction(bare: PanelPage) -> None:
    panel = shown_with(bare, built_in())
    panel.page.locator("[data-role=quantity]").click()
    search(panel).fill("dead_fractions")
    expect(panel.page.locator(".nbp-pick-side > p")).to_contain_text("near: dead_fraction")
    search(panel).fill("RankMe")
    expect(names(panel).first).to_have_text("effective_rank")


def test_arrows_move_turn_the_question_and_enter_takes_it(panel: PanelPage) -> None:
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        panel.page.keyboard.press(key)
    chosen = panel.page.locator(".nbp-pick[aria-selected=true]")
    expect(chosen).to_have_attribute("data-quantity", "output_rms")
    panel.page.keyboard.press("ArrowRight")
    expect(panel.page.locator(".nbp-pick-side > p")).to_have_text("Are my ReLUs dead?")
    panel.page.keyboard.press("ArrowLeft")
    panel.page.keyboard.press("ArrowDown")
    panel.page.keyboard.press("Enter")
    button = panel.page.locator("[data-role=quantity]")
    expect(button).to_have_text("output_rms")
    expect(button).to_be_focused()
    panel.action("attach").click()
    assert panel.wait_sent("attach")["quantity"] == "output_rms"


def test_the_key_q_opens_it_and_a_preset_is_attached_by_a_click(panel: PanelPage) -> None:
    panel.page.keyboard.press("Escape")
    panel.root.focus()
    panel.page.keyboard.press("q")
    panel.page.get_by_role("tab", name="Presets").click()
    expect(names(panel)).to_have_text(["gradients", "spectra"])
    expect(panel.page.locator(".nbp-pick").first).to_contain_text(f"6.3{THIN}% of a step")
    panel.page.locator("[data-preset=spectra]").click()
    asked = panel.wait_sent("preset")
    row = kernel.ticket(asked["id"], "applied", 1237)
    panel.say(kernel.status_message(tickets=[row]))
    expect(panel.ticket).to_contain_text("attached at step 1\u202f237")


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_into_a_panel_of_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = shown_with(bare, built_in(), width, theme)
    if width >= 740:
        panel.row("block.conv3").click()
    panel.root.focus()
    panel.page.keyboard.press("q")
    panel.page.get_by_role("tab", name="Vanish or explode?").click()
    dialog = panel.page.get_by_role("dialog")
    inside, around = dialog.bounding_box(), panel.root.bounding_box()
    assert inside is not None
    assert around is not None
    assert around["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    assert around["y"] <= inside["y"]
    panel.picture(f"picker-{theme}-{width}")


@pytest.mark.parametrize("width", [640, 880, 1280])
def test_of_a_long_path_the_end_stands_in_what_fits_it_and_no_question_is_cut(
    bare: PanelPage, width: int
) -> None:
    path = "encoder.layers.11.self_attention.out_proj"
    message = built_in()
    modules = [("(root)", "Net", 10, 0, -1), (path, "Linear", 10, 10, 0)]
    panel = shown_with(bare, {**message, "modules": modules, "entries": [], "kinds": []}, width)
    if width < 740:
        panel.action("modules").click()
    panel.row(path).click()
    panel.page.locator("[data-role=quantity]").click()
    label = panel.page.locator("header label", has=panel.page.locator("[data-role=fitting-first]"))
    expect(label).to_have_text(f"what fits {path} first")
    assert label.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    cut = "(nodes) => nodes.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert panel.page.locator(".nbp-questions span:first-child").evaluate_all(cut) == 0
    panel.picture(f"picker-long-{width}")
