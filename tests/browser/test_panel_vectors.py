"""Vectors above the lines: rows of small pictures, one enlarged, slices, elements as lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import expect

from notebook_probe.explorer.draw.vectors import Vectors
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.vector_frames import VectorsFrame
from tests.browser import alert_messages as gpt
from tests.browser.panel_messages import (
    DIGITS,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage
from tests.explorer.draw.test_vectors import BINS, Histograms, Ragged, source_of
from tests.explorer.fakes import FakeStream

STEPS = 1240
PATHS = [path for path, _, _, own, _ in DIGITS if own][:6]
RED = (255, 42, 85)


def frame_of(source: Any, quantity: str, seq: int = 1) -> tuple[VectorsFrame, list[bytes]]:
    """What the kernel would send of a source."""
    made = Vectors().frame(source, PanelSelection(quantity), 600)
    assert made is not None
    message, buffers = made
    return {**message, "seq": seq}, [bytes(buffer) for buffer in buffers]  # type: ignore[typeddict-item]


def histograms(paths: Sequence[str] = tuple(PATHS), lost: bool = False) -> Any:
    """Outputs that widen at step 700 in one module."""
    counts = np.zeros((STEPS, len(paths), 6), np.float32)
    late = np.clip((np.arange(STEPS) - 650) / 120, 0, 1)
    for k in range(len(paths)):
        shift = late if k == 3 else np.zeros(STEPS)
        counts[:, k, 1] = counts[:, k, 3] = 400 * (1 - shift) + 20
        counts[:, k, 2] = 60
        counts[:, k, 4] = counts[:, k, 0] = 10 + 380 * shift
        if lost and k == 3:
            counts[900:, k, 5] = 30
    stream = Histograms(list(paths), BINS)
    stream.append(range(STEPS), histogram=counts)
    return source_of(stream)


def own_lengths(quantity: str, sizes: dict[str, int], values: npt.ArrayLike) -> Any:
    labels = [f"{path}[{k}/{size}]" for path, size in sizes.items() for k in range(size)]
    stream = FakeStream("every_1", labels, [quantity])
    stream.append(range(STEPS), **{quantity: values})
    return Ragged(stream)


def populate(panel: PanelPage, quantity: str, source: Any, glyph: str = "bars") -> PanelPage:
    glyphs = {"output_quantiles": "bars", "output_cov_eigs": "curve", "attn_head_entropy": "dashes"}
    panel.say(model_message())
    panel.say(status_message(vectors={**glyphs, quantity: glyph}))
    panel.say(selection_message(home=quantity, log_heat=None, log_y=None))
    panel.draw(*frame_of(source, quantity))
    return panel


def canvas(panel: PanelPage) -> Any:
    return panel.page.locator(".nbp-vectors")


def hover(panel: PanelPage, step: float, y: float) -> None:
    box = canvas(panel).bounding_box()
    x = panel.x_of_step(canvas(panel), step)
    panel.page.mouse.move(box["x"] + x, box["y"] + y)


def click(panel: PanelPage, step: float, y: float) -> None:
    hover(panel, step, y)
    panel.page.mouse.down()
    panel.page.mouse.up()


def test_a_row_for_each_module_stands_in_place_of_the_heat_map(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    expect(canvas(panel)).to_be_visible()
    expect(panel.heat).to_be_hidden()
    expect(canvas(panel)).to_have_attribute("data-rows", "6")
    assert json.loads(canvas(panel).get_attribute("data-axis"))[0] == 0
    chip = panel.page.locator(".nbp-quantities [data-quantity=histogram]")
    expect(chip.locator(".nbp-glyph")).to_have_attribute("data-glyph", "bars")
    panel.say(selection_message(home="grad_norm"))
    expect(canvas(panel)).to_be_hidden()
    expect(panel.heat).to_be_visible()


def test_a_click_enlarges_a_module_and_a_click_in_it_draws_an_element(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    hover(panel, 600, 170)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("click enlarges it")
    click(panel, 600, 170)
    expect(canvas(panel)).to_have_attribute("data-enlarged", PATHS[3])
    hover(panel, 600, 175)
    expect(tip).to_contain_text(
        re.compile(rf"{PATHS[3]}\s+steps (596–599|600–603)")
    )  # of a whole pixel
    expect(tip).to_contain_text("%")
    expect(tip).to_contain_text("click draws this as a line")
    text = tip.inner_text()
    click(panel, 600, 175)
    [series] = panel.wait_sent("selection")["series"]
    assert series[0] == PATHS[3]
    assert series[1] in {f"histogram[{key}]" for key in ("-4", "-1", "0", "1", "4")}
    assert series[1] != "histogram[-4]" or "−∞" in text
    panel.draw(*lines_message({(series[0], series[1]): (range(50), np.linspace(1, 9, 50))}))
    panel.picture("vectors-enlarged")


@pytest.mark.parametrize(
    ("width", "theme"), [(640, "light"), (880, "light"), (880, "dark"), (1280, "dark")]
)
def test_histograms_at_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = populate(bare.show(width, theme), "histogram", histograms(lost=True))
    click(panel, 600, 110)
    hover(panel, 1000, 140)
    expect(panel.page.locator(".nbp-tip:visible")).to_have_count(1)
    panel.picture(f"vectors-{width}-{theme}")
    assert panel.root.evaluate("(root) => root.scrollWidth <= root.clientWidth")
    assert panel.errors == []


def written(panel: PanelPage, act: Callable[[], None]) -> list[str]:
    """What is written on canvases while something is done and painted."""
    panel.page.evaluate(
        """() => { const pen = CanvasRenderingContext2D.prototype;
        window.writes = { texts: [], own: pen.fillText };
        pen.fillText = function (text, ...at) {
          writes.texts.push(text); writes.own.call(this, text, ...at); }; }"""
    )
    act()
    panel.wait_frame()
    texts: list[str] = panel.page.evaluate(
        "(CanvasRenderingContext2D.prototype.fillText = writes.own, writes.texts)"
    )
    return texts


def test_each_histogram_that_is_high_enough_has_its_axis(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    texts = written(panel, lambda: panel.draw(*frame_of(histograms(), "histogram", 2)))
    for path in PATHS:
        at = texts.index(path)
        assert texts[at : at + 4] == [path, "4", "0", "−4"]


def test_a_low_histogram_names_both_ends_of_its_axis(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms(lost=True))
    click(panel, 600, 110)  # enlarges one, so that the others are low
    texts = written(panel, lambda: hover(panel, 1000, 140))
    for path in {*PATHS} - {PATHS[2]}:
        at = texts.index(path)
        assert texts[at : at + 3] == [path, "4", "−4"]


def test_spectra_and_heads_fill_a_row_each_whatever_their_length(bare: PanelPage) -> None:
    t = np.arange(STEPS)[:, None] / STEPS
    sizes = dict.fromkeys(PATHS, 24) | {PATHS[1]: 8}
    eigs = np.concatenate(
        [10 ** (1 - 5 * np.linspace(0, 1, n) * (0.5 + 0.5 * t)) for n in sizes.values()], axis=1
    )
    panel = populate(
        bare.show(880), "output_cov_eigs", own_lengths("output_cov_eigs", sizes, eigs), "curve"
    )
    click(panel, 600, 110)
    hover(panel, 700, 160)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("eigenvalue ")
    expect(tip).to_contain_text("of 24:")
    assert "eigenvalue" in written(panel, lambda: hover(panel, 705, 160))  # beside the colours
    expect(panel.action("heat-options")).to_have_text("log")
    panel.picture("vectors-spectrum")
    heads = dict.fromkeys(PATHS, 8)
    random = np.random.default_rng(0).uniform(0.5, 4, (STEPS, 48)) * (1 - 0.5 * t)
    source = own_lengths("attn_head_entropy", heads, random)
    panel = populate(bare.show(880), "attn_head_entropy", source, "dashes")
    click(panel, 600, 110)
    hover(panel, 700, 160)
    expect(tip).to_contain_text("head ")
    panel.picture("vectors-heads")
    click(panel, 700, 160)
    assert panel.wait_sent("selection")["series"][0][1].startswith("attn_head_entropy[")


def test_what_is_not_finite_has_a_lane_and_its_own_colour(bare: PanelPage) -> None:
    sizes = dict.fromkeys(PATHS[:2], 4)
    values = np.ones((STEPS, 8), np.float32)
    values[400:600, 2] = np.inf
    source = own_lengths("attn_head_entropy", sizes, values)
    panel = populate(bare.show(880), "attn_head_entropy", source, "dashes")
    assert panel.count_colour(canvas(panel), RED) > 100
    hover(panel, 500, 89)
    expect(panel.page.locator(".nbp-tip:visible")).to_contain_text("head 2: NaN or infinite")


def test_the_options_of_vectors_are_shares_or_counts_and_one_scale_or_own(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    word = panel.action("heat-options")
    expect(word).to_have_text("share")
    word.click()
    panel.page.locator("[data-role=counts] [data-value=true]").click()
    expect(word).to_have_text("counts")
    panel.page.locator("[data-role=own-scale] [data-value=true]").click()
    expect(word).to_have_text("counts · per-module scales")
    expect(panel.page.locator("[data-role=cells]")).to_be_hidden()
    panel.picture("vectors-options")
    panel.page.keyboard.press("Escape")
    hover(panel, 100, 20)
    expect(panel.page.locator(".nbp-tip:visible")).not_to_contain_text("%")


def test_the_slice_is_of_the_step_or_of_the_nearest_earlier_one(bare: PanelPage) -> None:
    stream = Histograms(["a"], BINS)
    stream.append([*range(20), 200, 201, 202], histogram=[5.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    panel = populate(bare.show(880), "histogram", source_of(stream))
    hover(panel, 100, 10)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("measured at 19")


def test_more_rows_than_there_is_room_for_are_scrolled_and_keys_move_through_them(
    bare: PanelPage,
) -> None:
    paths = [f"m{k}" for k in range(60)]
    panel = populate(bare.show(880), "histogram", histograms(paths))
    places = panel.call("rowPlaces", 60, -1, 0, 2, 298)
    assert all(place["bottom"] - place["top"] >= 9 for place in places)
    assert len(places) < 60
    canvas(panel).focus()
    for _ in range(3):
        panel.page.keyboard.press("ArrowDown")
    panel.page.keyboard.press("Enter")
    expect(canvas(panel)).to_have_attribute("data-enlarged", "m2")
    panel.page.keyboard.press("Shift+Enter")
    assert panel.wait_sent("selection")["series"] == [["m2", "histogram[-4]"]]
    box = canvas(panel).bounding_box()
    panel.page.mouse.move(box["x"] + 200, box["y"] + 100)
    panel.page.mouse.wheel(0, 100)
    panel.wait_frame()
    panel.picture("vectors-scrolled")


def test_the_tip_tells_of_the_row_that_was_scrolled_under_a_pointer_at_rest(
    bare: PanelPage,
) -> None:
    panel = populate(bare.show(880), "histogram", histograms([f"m{k}" for k in range(60)]))
    hover(panel, 100, 20)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("m1  step")
    panel.page.mouse.wheel(0, 100)
    expect(tip).to_contain_text("m2  step")
    panel.page.mouse.wheel(0, -100)
    expect(tip).to_contain_text("m1  step")


def test_a_view_is_told_when_vectors_were_painted_and_the_tree_has_their_picture(
    bare: PanelPage,
) -> None:
    panel = populate(bare.show(1060), "histogram", histograms())
    painted = "(canvas) => canvas.getContext('2d').getImageData(0, 0, 128, 10).data.some((v) => v)"
    swatch = f"document.querySelector('.nbp-row[data-module=\"{PATHS[0]}\"] canvas')"
    panel.page.wait_for_function(f"({painted})({swatch})")
    panel.page.wait_for_function(
        "() => sent.some(({ type, widths }) => type === 'viewport' && 'vectors' in widths)"
    )


def test_marks_of_alerts_and_of_what_was_done_stand_below_vectors_too(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    panel.say(
        gpt.alerts_message([gpt.alert(620, "loss_spike", ["(root)"], ["loss"], "it is high")])
    )
    panel.wait_frame()
    bottom = json.loads(canvas(panel).get_attribute("data-box"))[3]
    hover(panel, 620, bottom + 5)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("loss_spike at the model: it is high")
    click(panel, 620, bottom + 5)
    panel.page.mouse.move(0, 0)
    cursor = panel.page.locator(".nbp-plot:has(.nbp-vectors) .nbp-cursor")
    expect(cursor).to_be_visible()
    expect(cursor).to_have_attribute("data-from", "pin")
    panel.picture("vectors-marks")


def test_arrows_move_through_vectors_wherever_the_focus_is(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    panel.root.focus()
    panel.page.keyboard.press("ArrowRight")
    panel.page.keyboard.press("ArrowDown")
    expect(panel.page.locator(".nbp-tip:visible")).to_contain_text(f"{PATHS[1]}  step")


def test_bins_that_widen_are_no_line_and_say_so(bare: PanelPage) -> None:
    panel = bare.show(880)
    panel.say(model_message())
    panel.say(status_message(vectors={"histogram": "bars"}))
    panel.say(selection_message(home="histogram", log_heat=None, log_y=None))
    message, buffers = frame_of(histograms(), "histogram")
    panel.draw({**message, "has_series": False}, buffers)
    click(panel, 600, 110)
    hover(panel, 600, 175)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("not drawn as a line: its bins widen with the values")


def test_the_enlarged_row_takes_the_room_that_the_others_leave(bare: PanelPage) -> None:
    panel = bare.show(880)
    few, many = (panel.call("rowPlaces", n, 1, 0, 2, 298) for n in (3, 20))
    heights = [place["bottom"] - place["top"] for place in few]
    assert heights == [30, pytest.approx(296 - 2 * 33 - 3), 30]
    assert max(place["bottom"] - place["top"] for place in many) == pytest.approx(145)


def test_the_element_under_the_pointer_is_framed_over_all_steps(bare: PanelPage) -> None:
    panel = populate(bare.show(880), "histogram", histograms())
    click(panel, 600, 110)
    panel.page.mouse.move(2, 2)
    panel.wait_frame()
    ink = (31, 35, 40)
    plain = panel.count_colour(canvas(panel), ink)
    hover(panel, 600, 175)
    panel.wait_frame()
    assert panel.count_colour(canvas(panel), ink) > plain + 200
