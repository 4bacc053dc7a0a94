"""What became of the probes: the compiled notice, the silent ones, values, costs, odd entries."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.explorer_page import plain
from tests.browser.panel_messages import (
    WEIGHTED,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
    ticket,
)
from tests.browser.panel_page import PanelPage

NOTE = "the model is compiled and its calls run no hooks"
COMPILED = {"kind": "compiled", "reason": NOTE, "probes": [0, 1, 2, 3, 4]}
NOT_CALLED = {"kind": "silent", "reason": "not called by any training forward yet", "probes": [5]}
NOT_DUE = {"kind": "waiting", "reason": "first value at step 2000", "probes": [6, 7]}


def tallies(*first: tuple[int, float, float]) -> list[tuple[int, float, float]]:
    """The given ones, then probes that fired at step 1239."""
    return [*first, *[(1239, 8.4, 0.07)] * (len(WEIGHTED) - len(first))]


def notice(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-notice")


def items(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-item:visible")


def title(row: Locator) -> list[str]:
    return plain(row.get_attribute("title") or "").split("\n")


# ------------------------------------------------------------------------------------ compiled


def test_a_compiled_model_is_told_in_a_bar_that_says_who_is_concerned_and_what_to_do(
    shown: PanelPage,
) -> None:
    expect(notice(shown)).to_be_hidden()
    shown.say(status_message(silent=[COMPILED]))
    expect(notice(shown)).to_contain_text(
        "This model is compiled and runs no hooks: 5 probes at stem.conv1, stem.bn1, block.conv2 "
        "and 2 more modules have no values."
    )
    expect(notice(shown)).to_contain_text("may differ in the last bits")
    expect(notice(shown)).to_contain_text("With every(1) every step runs eagerly")
    expect(notice(shown).locator("[role=alert]")).to_be_visible()
    expect(shown.action("eager")).to_have_text("Run probed steps eagerly")


def test_one_click_runs_probed_steps_eagerly_and_the_bar_goes_when_a_value_has_come(
    shown: PanelPage,
) -> None:
    unseen = tallies(*[(-1, 0.0, 0.0)] * 5)
    shown.say(status_message(silent=[COMPILED], tallies=unseen))
    shown.action("eager").click()
    asked = shown.wait_sent("compiled")
    assert asked["steps"] == "eager"
    expect(shown.action("eager")).to_be_hidden()
    expect(notice(shown)).to_contain_text("sent, waiting for the kernel")
    queued = status_message(silent=[COMPILED], tickets=[ticket(asked["id"], "queued")])
    shown.say(queued)
    expect(notice(shown)).to_contain_text("queued at step 1\u202f236")

    applied = {"tickets": [ticket(asked["id"], "applied", 1241)]}
    called = {**NOT_CALLED, "probes": COMPILED["probes"]}
    shown.say(status_message(**applied, silent=[called], tallies=unseen))
    expect(notice(shown)).to_contain_text("Probed steps run eagerly from step 1\u202f241 on.")
    expect(notice(shown)).to_contain_text("waiting for the first values")
    expect(notice(shown)).not_to_contain_text("no values.")
    shown.say(status_message(**applied, tallies=tallies((-1, 0.0, 0.0), (1250, 9.1, 0.08))))
    expect(notice(shown)).to_be_hidden()


def test_a_refusal_stands_in_the_bar_and_the_button_comes_back(shown: PanelPage) -> None:
    shown.say(status_message(silent=[COMPILED]))
    shown.action("eager").click()
    click = shown.wait_sent("compiled")["id"]
    refused = [ticket(click, "refused", text="the stance cannot change here")]
    shown.say(status_message(silent=[COMPILED], tickets=refused))
    expect(notice(shown)).to_contain_text("✕ the stance cannot change here")
    expect(shown.action("eager")).to_be_enabled()
    shown.say(status_message(silent=[COMPILED], can={"compiled": "this run has ended"}))
    expect(shown.action("eager")).to_be_disabled()
    expect(shown.action("eager")).to_have_attribute("title", "this run has ended")
    shown.action("eager").click(force=True)
    assert len(shown.sent("compiled")) == 1


def test_a_bar_for_one_probe_speaks_of_one(shown: PanelPage) -> None:
    shown.say(status_message(silent=[{**COMPILED, "probes": [0]}]))
    expect(notice(shown)).to_contain_text("1 probe at stem.conv1 has no values.")
    shown.say(status_message(silent=[{**COMPILED, "probes": [0, 1, 2, 3]}]))
    expect(notice(shown)).to_contain_text("and 1 more module have no values.")


# -------------------------------------------------------------------------------------- silent


def test_above_the_tree_the_silent_probes_are_counted_without_those_that_only_wait(
    shown: PanelPage,
) -> None:
    expect(shown.action("silent")).to_be_hidden()
    shown.say(status_message(silent=[NOT_DUE]))
    expect(shown.action("silent")).to_be_hidden()
    shown.say(status_message(silent=[NOT_DUE, COMPILED, NOT_CALLED]))
    expect(shown.action("silent")).to_have_text("▲ 6 probes have no values")


def test_a_dot_is_hollow_where_nothing_fires_that_should(shown: PanelPage) -> None:
    shown.say(status_message(silent=[NOT_CALLED, NOT_DUE]))
    signs = {"stem.conv1": "●", WEIGHTED[5]: "○", WEIGHTED[6]: "●", "stem.relu1": ""}
    for module, sign in signs.items():
        expect(shown.row(module).locator(".nbp-mark")).to_have_text(sign)


def test_the_silent_probes_are_listed_by_reason_and_a_click_marks_them(shown: PanelPage) -> None:
    late = [(-1, 0.0, 0.0)] * 5 + [(410, 8.0, 0.1)]
    shown.say(status_message(silent=[COMPILED, NOT_CALLED, NOT_DUE], tallies=tallies(*late)))
    shown.action("silent").click()
    expect(items(shown)).to_have_count(2)
    expect(items(shown).first).to_contain_text(NOTE)
    expect(items(shown).first).to_contain_text("5 probes")
    expect(items(shown).first).to_contain_text(
        "grad_norm at stem.conv1, stem.bn1, block.conv2 and 2 more"
    )
    expect(items(shown).last).to_contain_text("grad_norm at block.bn3, last at step 410")
    items(shown).first.click()
    expect(items(shown)).to_have_count(0)
    marked = shown.page.locator(".nbp-row[aria-selected=true]:visible")
    expect(marked).to_have_count(5)
    expect(shown.row("stem.conv1")).to_have_attribute("aria-selected", "true")


# ------------------------------------------------------------------------ each probe, and costs


def test_a_row_tells_of_each_probe_when_it_fired_what_it_costs_and_why_it_does_not(
    shown: PanelPage,
) -> None:
    attached = [
        ("head.fc1", "grad_norm", "every(1)"),
        ("head.fc1", "output_std", "every(50)"),
        ("head.fc1", "zero_fraction", "every(7)"),
        ("head.fc2", "weight_norm", "every(1)"),
    ]
    status = status_message(
        attached=attached,
        tallies=[(1239, 8.4, 0.073), (-1, 0.0, 0.0), (400, 1400.0, 12.4), (-1, 0.0, 0.0)],
        silent=[
            {"kind": "waiting", "reason": "first value at step 1250", "probes": [1]},
            {"kind": "silent", "reason": "called, but no gradient", "probes": [2]},
        ],
    )
    shown.say(status)
    shown.row("head.fc1").click()
    assert title(shown.row("head.fc1")) == [
        "head.fc1: Linear, 4160 parameters",
        "grad_norm, every(1): step 1239 · 8.4µs per step, 0.073%",
        "output_std, every(50): first value at step 1250",
        "zero_fraction, every(7): step 400 · called, but no gradient · 1.4ms per step, 12%",
    ]
    expect(shown.action("here")).to_have_text("3 attached")
    shown.action("here").click()
    told = [plain(text) for text in items(shown).all_inner_texts()]
    assert [text.split("\n")[0] for text in told] == ["grad_norm", "output_std", "zero_fraction"]
    assert "step 1239 · 8.4µs per step, 0.073%" in told[0]
    assert "first value at step 1250" in told[1]
    items(shown).first.click()
    assert shown.wait_sent("selection")["series"] == [["head.fc1", "grad_norm"]]
    shown.row("head.fc2").click(modifiers=["Control"])
    shown.action("here").click()
    expect(items(shown).last).to_contain_text("head.fc2 · weight_norm")
    expect(items(shown).last).to_contain_text("no value yet")
    shown.page.keyboard.press("Escape")
    shown.row("stem.relu1").click()
    expect(shown.action("here")).to_be_hidden()


def test_the_list_of_quantities_keeps_its_choice_while_costs_change(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    quantity = shown.page.locator("[data-role=quantity]")
    shown.choose("output_std")
    quantity.click()
    option = shown.page.locator(".nbp-pick[data-quantity=output_std]")
    expect(option).to_contain_text("11\u202fµs")
    expect(option).to_have_attribute("aria-selected", "true")
    shown.page.keyboard.press("ArrowUp")
    shown.say(status_message(costs={"output_std": 2300.0}))
    expect(option).to_contain_text("2.3\u202fms")
    expect(option).to_have_attribute("aria-selected", "false")
    shown.page.keyboard.press("Escape")
    expect(quantity).to_have_text("output_std")


def test_a_budget_stands_in_the_foot_and_one_click_lifts_it(shown: PanelPage) -> None:
    told = "output_std every 4th due step; the aim is below 2 %"
    budget = shown.page.locator(".nbp-foot .nbp-stretched")
    shown.say(
        {"v": 1, "type": "probes", "n_measured": 64, "step_s": 0.02, "budget": 2.0, "presets": []}
    )
    shown.say(status_message(budget=told))
    expect(budget).to_have_text("measured less often: at most 2\u202f% of a step")
    expect(budget).to_have_attribute("title", told)
    expect(shown.page.locator(".nbp-cost")).to_have_text("probes 2.1\u202f%")
    shown.action("lift-budget").click()
    assert shown.wait_sent("budget")["percent"] is None
    shown.say(status_message())
    expect(budget).to_be_hidden()
    expect(shown.action("lift-budget")).to_be_hidden()
    shown.say(model_message(live=False))
    shown.say(status_message(budget=told))
    expect(budget).to_be_visible()
    expect(shown.action("lift-budget")).to_be_hidden()


def test_what_takes_long_to_measure_is_told_in_the_foot(shown: PanelPage) -> None:
    told = "measuring sharpness at (root): 1 losses, 12 Hessian products"
    progress = shown.page.locator(".nbp-foot .nbp-progress")
    shown.say(status_message(progress=told))
    expect(progress).to_have_text(told)
    shown.say(status_message())
    expect(progress).to_be_hidden()


# --------------------------------------------------------- calls, parameters, vectors, new modules


def test_calls_and_parameters_are_rows_below_their_module(shown: PanelPage) -> None:
    calls = [f"head.fc1[{call}]" for call in range(3)]
    entries = [("(root)[0]", "(root)"), *((c, "head.fc1") for c in calls), ("pool.p", "pool")]
    shown.say(model_message(entries=entries))
    shown.say(status_message(recorded={"output_std": [*calls, "pool.p"]}))
    names = shown.page.locator(".nbp-row:visible .nbp-name")
    expect(names.nth(1)).to_have_text("[0]")
    place = shown.page.locator('.nbp-row[data-module="head.fc1"]').evaluate(
        "(row) => [...row.parentElement.children].indexOf(row)"
    )
    for k, call in enumerate(calls):
        row = names.nth(place + 1 + k)
        expect(row).to_have_text(f"[{k}]")
        expect(shown.row(call)).to_contain_text("call")
        assert shown.row(call).get_attribute("aria-level") == "3"
    expect(shown.row("pool.p").locator(".nbp-name")).to_have_text("p")
    shown.row("head.fc1").locator(".nbp-fold").click()
    expect(shown.row(calls[0])).to_be_hidden()
    expect(shown.page.locator('.nbp-row:visible[data-module="head.fc2"]')).to_have_count(1)
    shown.draw(*heat_message([[1.0, 2.0]] * 2, calls[:2], quantity="output_std"))
    assert shown.errors == []


def test_a_call_takes_no_probe_of_its_own_and_a_parameter_asks_the_kernel(
    shown: PanelPage,
) -> None:
    shown.say(model_message(entries=[("head.fc1[0]", "head.fc1"), ("head.fc2.bias", "head.fc2")]))
    shown.row("head.fc1[0]").click()
    expect(shown.action("attach")).to_be_disabled()
    expect(shown.action("attach")).to_have_attribute(
        "title", "a single call takes no probe; attach it at its module"
    )
    shown.row("head.fc2.bias").click()
    shown.choose("weight_norm")
    shown.action("attach").click()
    assert shown.wait_sent("attach")["where"] == ["head.fc2.bias"]


def test_modules_that_are_added_appear_and_marks_and_folds_stay(shown: PanelPage) -> None:
    shown.row("block").locator(".nbp-fold").click()
    shown.row("stem.conv1").click()
    grown: Any = [*model_message()["modules"], ("late", "Linear", 6, 6, 0)]
    shown.say(model_message(grown))
    expect(shown.row("late")).to_contain_text("Linear 6")
    expect(shown.row("block.conv2")).to_be_hidden()
    expect(shown.row("stem.conv1")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("vector", "A vector: its picture is above the lines."),
        ("image", "An image: recorded, not drawn here."),
    ],
)
def test_the_box_says_of_a_vector_and_of_an_image_where_it_is_drawn(
    shown: PanelPage, value: Literal["vector", "image"], what: str
) -> None:
    message = model_message()
    listed = [
        {**one, "value": value} if one["name"] == "output_histogram" else one
        for one in message["quantities"]
    ]
    shown.say({**message, "quantities": listed})
    shown.row("stem.conv1").click()
    shown.choose("output_histogram")
    hint = shown.page.locator(".nbp-attach .nbp-hint[data-fits]")
    expect(hint).to_contain_text(
        f"{what} In Python, of notebook_probe.figures: "
        'vector(run.series("stem.conv1", "output_histogram"))'
    )
    shown.choose("output_std")
    expect(hint).not_to_contain_text(value)


def test_a_vector_is_not_offered_to_be_drawn_before_its_first_value_either(
    shown: PanelPage,
) -> None:
    shown.row("stem.conv1").click()
    shown.choose("output_histogram")
    shown.action("attach").click()
    click = shown.wait_sent("attach")["id"]
    shown.say(status_message(tickets=[ticket(click, "applied", 1237)], vectors={}))
    expect(shown.ticket).to_have_attribute("data-state", "applied")
    expect(shown.action("draw")).to_be_hidden()


def test_a_vector_is_never_an_error_and_is_said_not_to_be_drawn(shown: PanelPage) -> None:
    histogram = ("head.fc1", "output_histogram")
    changes: dict[str, Any] = {
        "attached": [(*histogram, "every(1)")],
        "tallies": [(1239, 40.0, 0.3)],
        "vectors": {"output_histogram": ""},
    }
    shown.say(status_message(**changes, recorded={}))
    expect(shown.page.locator(".nbp-empty")).to_have_text(
        "Recorded, but not drawn here: output_histogram."
    )
    shown.say(status_message(**changes))
    shown.say(selection_message(series=[histogram]))
    shown.draw(*lines_message({histogram: ([], [])}))
    expect(shown.page.locator(".nbp-plot:has(.nbp-lines) .nbp-note")).to_have_text(
        "output_histogram is no number, not drawn here; notebook_probe.figures does: "
        'vector(run.series("head.fc1", "output_histogram"))'
    )
    shown.row("head.fc1").click()
    assert title(shown.row("head.fc1"))[1].startswith("output_histogram, every(1): step 1239")
    assert shown.errors == []


def test_an_opened_record_of_vectors_says_what_it_holds(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message(live=False))
    panel.say(status_message(attached=[], tallies=[], recorded={}, vectors={"weight_spectrum": ""}))
    expect(panel.page.locator(".nbp-empty")).to_contain_text("not drawn here: weight_spectrum.")
