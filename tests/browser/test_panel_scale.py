"""The y axis of the lines: without outliers, with them, by hand; what is left out is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from notebook_probe.figures.outliers import inner_range
from tests.browser.panel_messages import lines_message, selection_message
from tests.browser.panel_page import PanelPage, introduce

LOSS = ("(root)", "loss")
STEPS = np.arange(400)
CALM = 1.5 + 0.5 * np.sin(STEPS / 9)
SPIKE = np.where(STEPS == 200, 4e6, CALM)


def draw(panel: PanelPage, values: Any, **chosen: Any) -> PanelPage:
    """One line, on a linear axis unless ``chosen`` says otherwise."""
    panel.say(selection_message(**{"series": [LOSS], "log_y": False, **chosen}))
    panel.draw(*lines_message({LOSS: (STEPS, values)}))
    return panel


def range_of(panel: PanelPage, values: Any, **wish: Any) -> dict[str, Any]:
    """The range that the panel shows of a series."""
    found: dict[str, Any] = panel.evaluate(
        """([u, v, wish]) => parts.shownRange(
          [{ u: Float64Array.from(u), v: Float64Array.from(v), average: { u: [], v: [] } }],
          0, 1e9, { log: false, y_limits: null, outliers: false, ...wish })""",
        [STEPS.tolist(), list(map(float, values)), wish],
    )
    return found


def test_one_spike_does_not_flatten_the_rest_and_is_said(panel: PanelPage) -> None:
    draw(panel, SPIKE)
    expect(panel.lines).to_have_attribute("data-beyond", "1 value beyond the scale, to 4e6")
    found = range_of(panel, SPIKE)
    assert (found["low"], found["high"]) == pytest.approx((CALM.min(), CALM.max()))
    panel.picture("scale-outlier")


def test_a_line_without_an_outlier_has_all_its_values_on_the_scale(panel: PanelPage) -> None:
    decay = 10 * np.exp(-STEPS / 60) + 0.01 * CALM
    draw(panel, decay)
    assert panel.lines.get_attribute("data-beyond") is None
    found = range_of(panel, decay)
    assert found["high"] == pytest.approx(decay.max())
    assert found["beyond"] is None


@pytest.mark.parametrize(
    "values",
    [np.where(STEPS == 7, 1.0, 0.0), np.where(STEPS < 200, 1.0, 1e6), np.full(400, 3.0)],
    ids=["one of a kind", "half of them", "constant"],
)
def test_a_flag_a_jump_and_a_constant_lose_nothing(panel: PanelPage, values: Any) -> None:
    found = range_of(panel, values)
    assert (found["low"], found["high"], found["beyond"]) == (values.min(), values.max(), None)


def test_a_series_of_another_size_is_no_outlier(panel: PanelPage) -> None:
    found = panel.evaluate(
        """([u, v]) => { const line = (by) => ({ u: Float64Array.from(u),
            v: Float64Array.from(v, (one) => one * by), average: { u: [], v: [] } });
          return parts.shownRange([line(1), line(1e5)], 0, 1e9,
            { log: false, y_limits: null, outliers: false }); }""",
        [STEPS.tolist(), CALM.tolist()],
    )
    assert found["high"] == pytest.approx(1e5 * CALM.max())
    assert found["beyond"] is None


def test_outliers_are_shown_on_request(panel: PanelPage) -> None:
    draw(panel, SPIKE)
    panel.page.locator("[data-action=line-options]").click()
    panel.page.get_by_role("radiogroup", name="Outliers").get_by_text("shown").click()
    assert panel.wait_sent("selection")["outliers"] is True
    panel.wait_frame()
    assert panel.lines.get_attribute("data-beyond") is None


def test_limits_by_hand_are_the_ends_of_the_axis_until_it_fits_again(panel: PanelPage) -> None:
    draw(panel, CALM)
    panel.page.locator("[data-action=line-options]").click()
    low, high = (panel.page.get_by_label(f"{one} value") for one in ("Lowest", "Highest"))
    low.fill("1.75")
    high.fill("0")
    high.press("Tab")
    expect(high).to_have_attribute("aria-invalid", "true")
    assert panel.sent("selection") == []
    high.fill("1,9")
    high.press("Tab")
    assert panel.wait_sent("selection")["y_limits"] == [1.75, 1.9]
    found = range_of(panel, CALM, y_limits=[1.75, 1.9])
    assert (found["low"], found["high"], found["exact"]) == (1.75, 1.9, True)
    expect(panel.page.locator("[data-action=line-options]")).to_contain_text("limits")
    panel.picture("scale-by-hand")
    panel.page.locator("[data-action=fit-y]").click()
    assert panel.wait_sent("selection", 2)["y_limits"] is None


def test_on_a_log_axis_limits_at_zero_are_left_to_the_lines(panel: PanelPage) -> None:
    found = range_of(panel, np.log10(CALM), log=True, y_limits=[0, 10])
    assert found["exact"] is False


@pytest.mark.parametrize(("width", "theme"), [(700, "dark"), (1100, "light")])
def test_the_note_is_readable_at_any_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = draw(introduce(bare.show(width, theme)), SPIKE, smooth=0.9)
    panel.wait_frame()
    panel.picture(f"scale-outlier-{width}-{theme}")
    assert panel.errors == []


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        SPIKE,
        CALM,
        np.where(STEPS % 150 == 3, -1e5, CALM),
        np.exp(STEPS / 20.0),
        np.where(STEPS == 9, 1e-30, CALM),
        np.where(STEPS == 9, np.nan, CALM),
    ],
    ids=["spike", "calm", "three below", "growing", "tiny", "nan"],
)
def test_an_exported_picture_leaves_out_what_the_panel_does(
    panel: PanelPage, values: Any, log: bool
) -> None:
    drawn = np.log10(np.where(values > 0, values, np.nan)) if log else values
    steps = [None if np.isnan(one) else float(one) for one in drawn]
    found: Any = panel.evaluate(
        """([u, v, log]) => parts.shownRange(
          [{ u: Float64Array.from(u), v: Float64Array.from(v, (one) => one ?? NaN),
             average: { u: [], v: [] } }],
          0, 1e9, { log, y_limits: null, outliers: false })""",
        [STEPS.tolist(), steps, log],
    )
    here = inner_range([values], log)
    if here is None:
        assert found["beyond"] is None
        return
    assert (here.low, here.high) == pytest.approx((found["low"], found["high"]))
    assert here.n_beyond == found["beyond"]["n"]
    assert here.farthest == pytest.approx(found["beyond"]["farthest"])
