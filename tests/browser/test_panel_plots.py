"""Heads of one line, labels of the outermost lines, brackets, and what colours say."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.panel_messages import (
    WEIGHTED,
    gradient_norms,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

DEEP = [
    (f"blocks.{block}.{part}", "Linear", 100, 100, -1)
    for block in range(8)
    for part in ("ln1", "attn.qkv", "attn.proj", "ln2", "mlp.fc", "mlp.proj", "gate", "scale")
]
PATHS = [path for path, *_ in DEEP]


def shown_at(bare: PanelPage, width: int, theme: str = "light") -> PanelPage:
    """A model of 66 modules, its gradients recorded everywhere."""
    panel = bare.show(width, theme)
    modules = [("(root)", "GPT", 6400, 0, -1), ("wte", "Embedding", 64, 64, 0), *DEEP]
    panel.say(model_message([*modules, ("head", "Linear", 64, 64, 0)]))
    paths = ["wte", *PATHS, "head"]
    recorded = {"grad_norm": paths, "weight_norm": paths, "loss": ["(root)"]}
    panel.say(status_message(recorded=recorded, attached=[], tallies=[]))
    return panel


def drawn_series(n: int) -> dict[tuple[str, str], Any]:
    steps = np.arange(50)
    return {(PATHS[k], "grad_norm"): (steps, np.full(50, 1.0 + k)) for k in range(n)}


def test_on_a_phone_the_chip_of_the_chosen_quantity_is_whole(bare: PanelPage) -> None:
    panel = shown_at(bare, 320)
    panel.say(selection_message(home="update_ratio"))
    panel.draw(*heat_message(np.ones((3, 5)), ["wte", "head", PATHS[0]]))
    chosen = panel.page.locator(".nbp-quantities [aria-pressed=true]")
    expect(chosen).to_have_text("update_ratio")
    assert chosen.evaluate("(chip) => chip.scrollWidth <= chip.clientWidth")
    around, chip = panel.page.locator(".nbp-quantities").bounding_box(), chosen.bounding_box()
    assert around is not None
    assert chip is not None
    assert chip["x"] + chip["width"] <= around["x"] + around["width"]
    panel.picture("plots-320")


@pytest.mark.parametrize("width", [640, 880, 1280])
def test_the_heads_are_one_line_however_many_series_are_drawn(bare: PanelPage, width: int) -> None:
    panel = shown_at(bare, width)
    series = drawn_series(24)
    panel.say(selection_message(series=[*series], log_y=None, log_heat=None, smooth=0.9))
    panel.draw(*lines_message(series, smooth=0.9))
    panel.draw(*heat_message(np.ones((3, 5)), ["wte", "head", PATHS[0]]))
    heads = panel.page.locator(".nbp-head")
    for k in range(heads.count()):
        assert heads.nth(k).bounding_box()["height"] < 36  # type: ignore[index]
    panel.picture(f"plots-24-series-{width}")
    chips = panel.page.locator(".nbp-chip.nbp-on")
    n_shown = chips.count()
    assert 0 < n_shown < 24
    for text in panel.page.locator(".nbp-chip-text").all_inner_texts():
        assert len(text) >= 11, text
    inside = "(n) => n.scrollWidth <= n.clientWidth"
    assert panel.page.locator(".nbp-chips").evaluate(inside), "no chip is cut"
    rest = panel.action("rest")
    expect(rest).to_have_text(f"+{24 - n_shown}")
    rest.click()
    panel.picture(f"plots-24-series-rest-{width}")
    strokes = panel.page.locator(".nbp-item:visible .nbp-stroke")
    assert strokes.count() == 24 - n_shown, "each has the color and dashes of its line"
    found = "(nodes) => nodes.map((node) => getComputedStyle(node).background)"
    assert len({*strokes.evaluate_all(found)}) == 24 - n_shown
    last = panel.page.locator(".nbp-item:visible").last
    expect(last).to_contain_text(PATHS[23])
    last.click()
    assert len(panel.wait_sent("selection")["series"]) == 23


def test_a_name_gives_way_to_twelve_letters_before_a_chip_goes(bare: PanelPage) -> None:
    panel = bare.show()
    assert panel.call("fitChips", [20, 40], 1000)["letters"] == [20, 34]
    tight = panel.call("fitChips", [20, 40, 5], 420)["letters"]
    assert len(tight) == 3
    assert 12 <= max(tight) < 20
    assert tight[2] == 5
    assert panel.call("fitChips", [20] * 9, 420)["letters"] == [17, 17]


def test_marked_modules_are_drawn_in_bulk(bare: PanelPage) -> None:
    panel = shown_at(bare, 1060)
    already = (PATHS[0], "grad_norm")
    panel.say(selection_message(series=[already]))
    bulk = panel.action("draw-marked")
    expect(bulk).to_be_hidden()
    panel.row(PATHS[1]).click()
    expect(bulk).to_be_hidden()
    panel.row(PATHS[6]).click(modifiers=["Shift"])
    expect(bulk).to_have_text("+ 6 marked")
    bulk.click()
    series = panel.wait_sent("selection")["series"]
    assert series == [list(already), *([path, "grad_norm"] for path in PATHS[1:7])]
    expect(bulk).to_be_hidden()


def test_the_options_are_one_word_that_names_what_is_not_plain(bare: PanelPage) -> None:
    panel = shown_at(bare, 880)
    panel.say(selection_message(log_y=True, smooth=0.9, x_axis="time", log_heat=None))
    word = panel.action("line-options")
    expect(word).to_have_text("log y · smooth 0.9 · time")
    expect(panel.action("heat-options")).to_have_text("log")
    word.click()
    dialog = panel.page.get_by_role("dialog", name="Options of the lines")
    expect(dialog).to_contain_text("about 10 recorded values")
    panel.picture("plots-line-options")
    dialog.locator("[data-role=x-axis] [data-value=step]").click()
    assert panel.wait_sent("selection")["x_axis"] == "step"
    panel.page.keyboard.press("ArrowRight")
    assert panel.wait_sent("selection", 2)["x_axis"] == "time", "an arrow key chooses"
    panel.page.keyboard.press("Escape")
    expect(word).to_be_focused()
    panel.say(selection_message(log_y=False))
    expect(word).to_have_text("plain")
    panel.action("heat-options").click()
    panel.picture("plots-heat-options")
    cells = panel.page.locator("[data-role=cells]")
    expect(cells.locator("[data-value=max]")).to_have_attribute("aria-checked", "true")
    expect(panel.page.get_by_role("dialog")).to_contain_text("their largest value")


NO_EPOCHS = (
    "epochs are not recorded in digits-cnn; run.log(epoch=...) or run.batches(loader) does it"
)


def test_epochs_are_offered_where_they_are_known_else_greyed_with_the_reason(
    bare: PanelPage,
) -> None:
    panel = shown_at(bare, 880)
    share = ("wte", "grad_norm")
    panel.say(selection_message(series=[share]))
    line = {share: ([0, 1, 2], [0.5, 0.25, 0.125])}
    panel.draw(*lines_message(line, refused={"epoch": NO_EPOCHS}))
    panel.action("line-options").click()
    along = panel.page.locator("[data-role=x-axis]")
    epoch = along.locator("[data-value=epoch]")
    expect(epoch).to_have_attribute("aria-disabled", "true")
    expect(epoch).to_have_attribute("title", NO_EPOCHS)
    expect(panel.page.get_by_role("dialog")).to_contain_text(f"E{NO_EPOCHS[1:]}.")
    panel.picture("plots-no-epochs")
    epoch.dispatch_event("click")
    along.locator("[data-value=time]").focus()
    panel.page.keyboard.press("ArrowRight")
    expect(epoch).to_be_focused()
    assert panel.sent("selection") == []
    panel.draw(*lines_message(line, seq=2))
    expect(epoch).not_to_have_attribute("aria-disabled", "true")
    epoch.click()
    assert panel.wait_sent("selection")["x_axis"] == "epoch"
    expect(panel.action("line-options")).to_have_text("log y · epoch")


def test_a_chosen_axis_that_the_run_lacks_is_explained_above_the_lines(bare: PanelPage) -> None:
    panel = shown_at(bare, 880)
    share = ("wte", "grad_norm")
    panel.say(selection_message(series=[share], x_axis="epoch"))
    line = {share: ([0, 100, 200], [0.5, 0.25, 0.125])}
    panel.draw(*lines_message(line, refused={"epoch": NO_EPOCHS}))
    expect(panel.lines).to_have_attribute("data-why", "over steps: no epoch is recorded")
    assert json.loads(panel.lines.get_attribute("data-axis") or "")[1] >= 200
    panel.picture("plots-lacks-epochs")
    panel.draw(*lines_message(line, seq=2))
    expect(panel.lines).not_to_have_attribute("data-why", re.compile("."))


def test_an_axis_is_linear_or_logarithmic_as_the_frame_says_until_it_is_chosen(
    bare: PanelPage,
) -> None:
    panel = shown_at(bare, 880)
    share = ("wte", "dead_fraction")
    panel.say(selection_message(series=[share], log_y=None, smooth=0))
    panel.draw(*lines_message({share: ([0, 1, 2], [0.0, 0.25, 0.5])}, log_y=False))
    word = panel.action("line-options")
    expect(word).to_have_text("plain")
    word.click()
    values = panel.page.locator("[data-role=log-y]")
    expect(values.locator("[data-value=null]")).to_have_attribute("aria-checked", "true")
    expect(panel.page.get_by_role("dialog")).to_contain_text("Now linear.")
    values.locator("[data-value=true]").click()
    expect(word).to_have_text("log y")
    assert panel.wait_sent("selection")["log_y"] is True
    expect(panel.page.locator(".nbp-plot:has(.nbp-lines) .nbp-note")).to_be_hidden()


def test_smoothing_says_where_it_is_held_back(bare: PanelPage) -> None:
    panel = bare.show()

    def said(smooth: float, *weights: float) -> str:
        return str(panel.call("smoothingText", smooth, weights))

    assert said(0.0, 0.0) == "Every value as it was recorded."
    assert said(0.9, 0.9).endswith("about 10 recorded values.")
    assert "Less in lines of few values, down to 0.67" in said(0.99, 0.99, 0.67)


def test_labels_are_the_shortest_ends_that_differ(bare: PanelPage) -> None:
    panel = bare.show()

    def ends(*paths: str) -> dict[str, str]:
        script = "(paths) => Object.fromEntries(parts.uniqueEnds(paths))"
        found: dict[str, str] = panel.page.evaluate(script, list(paths))
        return found

    assert ends("stem.conv1", "head.fc1") == {"stem.conv1": "conv1", "head.fc1": "fc1"}
    assert ends("a.x.proj", "b.x.proj") == {"a.x.proj": "a.x.proj", "b.x.proj": "b.x.proj"}
    assert ends("blocks.2.attn") == {"blocks.2.attn": "2.attn"}
    assert ends("net.0", "net.1") == {"net.0": "net.0", "net.1": "net.1"}
    assert ends("proj", "a.proj") == {"proj": "proj", "a.proj": "a.proj"}


def test_of_too_many_lines_the_outermost_are_labelled(bare: PanelPage) -> None:
    panel = bare.show()
    ends = [{"y": float(y)} for y in np.random.default_rng(0).permutation(100)]
    kept = [end["y"] for end in panel.call("outermost", ends, 13)]
    assert kept == [*range(7), *range(94, 100)]
    assert panel.call("outermost", ends[:5], 13) == ends[:5]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_hundred_lines_one_that_ends_early_and_a_logged_one(bare: PanelPage, theme: str) -> None:
    panel = shown_at(bare, 880, theme)
    loss, early = ("(root)", "loss"), ("wte", "grad_norm")
    steps = np.arange(400)
    series = {
        path: (steps, values[1][0] * np.ones(400)) for path, values in drawn_series(60).items()
    }
    series |= {early: (steps[:150], np.full(150, 1e-3)), loss: (steps, 1000.0 + steps)}
    panel.say(selection_message(series=[*series], log_y=None))
    panel.draw(*lines_message(series))
    panel.picture(f"plots-labels-{theme}")
    few = {key: series[key] for key in (loss, early, (PATHS[3], "grad_norm"))}
    panel.say(selection_message(series=[*few], log_y=None))
    panel.draw(*lines_message(few, seq=2))
    expect(panel.page.locator(".nbp-chip-text").first).to_have_text("loss")
    panel.picture(f"plots-ends-{theme}")


def test_rows_that_are_thinner_than_text_stand_in_brackets(bare: PanelPage) -> None:
    panel = shown_at(bare, 880)

    def names(rows: list[str], height: float) -> list[tuple[str, int]]:
        found = panel.call("brackets", rows, height)
        assert [one["from"] for one in found] == [0, *(one["to"] for one in found[:-1])]
        assert found[-1]["to"] == len(rows)
        assert all((one["to"] - one["from"]) * height >= 13 for one in found)
        return [(one["name"], one["to"] - one["from"]) for one in found]

    rows = ["wte", "wpe", *PATHS, "ln_f", "head"]
    assert names(rows, 7) == [
        ("wte, wpe", 2),
        *((f"blocks.{k}", 8) for k in range(8)),
        ("ln_f, head", 2),
    ]
    assert names(rows, 1)[0][0] == "wte … head"
    norms = np.geomspace(1e-3, 1, 66)[:, None] * np.linspace(1, 3, 40)
    panel.draw(*heat_message(norms, ["wte", *PATHS, "head"]))
    panel.picture("plots-brackets")


def test_what_lies_beyond_the_colours_is_marked_at_the_bar(bare: PanelPage) -> None:
    panel = shown_at(bare, 880)
    cells = np.array([gradient_norms()[path] for path in WEIGHTED[:6]])
    cells[:, 300:] = np.geomspace(1, 1e16, 40)
    panel.draw(*heat_message(cells, PATHS[:6], limits=(1e-4, 10.0)))
    panel.picture("plots-beyond")
    _, _, right, _ = json.loads(panel.heat.get_attribute("data-box") or "")
    arrow = panel.pixel(panel.heat, right + 19, 10)
    assert arrow[:3] == (253, 231, 37), "an arrow of the last colour, out of the bar"
    assert panel.pixel(panel.heat, panel.x_of_step(panel.heat, 339), 6)[:3] == (253, 231, 37)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_shares_begin_at_the_ground_and_signs_part_from_it(bare: PanelPage, theme: str) -> None:
    panel = shown_at(bare, 880, theme)
    ground = {"light": (255, 255, 255), "dark": (17, 20, 23)}[theme]
    ramp = np.linspace(0, 1, 101)[None]
    panel.draw(*heat_message(ramp, ["wte"], colours="share", log=False, limits=(0, 1)))
    panel.say(selection_message(log_heat=None))
    panel.wait_frame()

    def at(step: float) -> np.ndarray[Any, Any]:
        x = panel.x_of_step(panel.heat, step)
        return np.array(panel.pixel(panel.heat, x, 6)[:3], float)

    def apart(step: float) -> float:
        return float(np.abs(at(step) - ground).sum())

    assert apart(0.5) < 12, "nothing looks like nothing"
    assert apart(25.5) < apart(50.5) < apart(100.5)
    panel.picture(f"plots-share-{theme}")
    signs = heat_message(ramp * 2 - 1, ["wte"], seq=2, colours="sign", log=False, limits=(-1, 1))
    panel.draw(*signs)
    panel.picture(f"plots-sign-{theme}")
    assert apart(50.5) < 12
    blue, orange = at(20.5), at(80.5)
    assert blue[2] > blue[0] + 30
    assert orange[0] > orange[2] + 30
    assert apart(0.5) > apart(30.5)
    assert apart(100.5) > apart(70.5)


def test_a_heat_map_of_one_row_ends_where_its_row_does(shown: PanelPage) -> None:
    shown.draw(*heat_message(np.linspace(1, 300, 100)[None], ["stem.conv1"]))
    below = """(least) => {
      const heat = document.querySelector(".nbp-heat");
      const height = heat.getBoundingClientRect().height;
      return height < 150 && Math.abs(height - JSON.parse(heat.dataset.box)[3] - least) <= 1;
    }"""
    shown.page.wait_for_function(below, arg=24)  # the axis alone; it is drawn again as it shrinks
    shown.picture("heat-one-row")
