"""What a summary collector has recorded, in a panel: images and histograms with a slider."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.explorer.draw.returned import frame_of
from notebook_probe.explorer.draw.view import fresh_selection
from notebook_probe.summary.views import ALL, HERE
from tests.browser.panel_messages import (
    model_message,
    selection_message,
    status_message,
    view_row,
)
from tests.browser.panel_page import PanelPage
from tests.summary.conftest import Small, a_loop, images

WIDTH = 880


class Telling(Small):
    """Tells what it gets, under a tag that is no name of anything."""

    def forward(self, x: Tensor) -> Tensor:
        nbp.summary.histogram("<i>pixels</i>", x)
        return super().forward(x)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nbp.OpenedRun:
    folder: Path = tmp_path_factory.mktemp("summary")
    loop = a_loop(Telling())
    specified = {"collect_landscape": None, "collect_graph": False}
    loop.add(nbp.SummaryCollector(str(folder), 5, collect_specified_data=specified))
    loop.run_epochs(images(10, size=16), 3)
    assert loop.run is not None
    loop.run.close()
    return nbp.open_run(folder / "record.zarr")


def shown(panel: PanelPage, run: nbp.OpenedRun, name: str, theme: str) -> Locator:
    """The view, drawn of a record as a kernel draws it."""
    panel.show(WIDTH, theme)
    panel.say(model_message())
    panel.say(status_message())
    panel.say(selection_message())
    panel.say({"v": 1, "type": "views", "rows": [view_row(name, cost_s=0.01, every_s=1.0)]})
    draw, file = ALL[name]
    text = "\n".join((HERE / one).read_text("utf-8") for one in ("stepper.js", file))
    panel.say({"v": 1, "type": "esm", "view": name, "text": text})
    message, buffers = frame_of(draw(run, fresh_selection(run)), name, text, WIDTH, 1.0)
    panel.say({**message, "seq": 1}, [bytes(buffer) for buffer in buffers])
    view = panel.root.locator(f'.nbp-own[data-view="{name}"]')
    expect(view.get_by_role("slider")).to_be_visible()
    return view


def pixels(canvas: Locator) -> Any:
    """What is drawn, as (height, width, 3)."""
    width, height, values = canvas.evaluate(
        """one => [one.width, one.height,
          [...one.getContext("2d").getImageData(0, 0, one.width, one.height).data]]"""
    )
    return np.array(values).reshape(height, width, 4)[..., :3]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_slider_goes_through_the_images_as_they_were_recorded(
    bare: PanelPage, run: nbp.OpenedRun, theme: str
) -> None:
    view = shown(bare, run, "images", theme)
    recorded = run.series("", "input_image")
    steps = recorded.step.values.tolist()
    slider, canvas = view.get_by_role("slider"), view.locator("canvas")
    expect(slider).to_have_attribute("aria-valuetext", f"step {steps[-1]}")
    np.testing.assert_array_equal(pixels(canvas), recorded.values[-1])
    for place in (0, 2):
        slider.fill(str(place))
        expect(canvas).to_have_attribute("aria-label", f"input_image at step {steps[place]}")
        np.testing.assert_array_equal(pixels(canvas), recorded.values[place])
    box = canvas.bounding_box()
    assert box is not None
    assert box["width"] <= WIDTH


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_slider_goes_through_the_histograms_of_each_parameter(
    bare: PanelPage, run: nbp.OpenedRun, theme: str
) -> None:
    view = shown(bare, run, "histograms", theme)
    slider, picture = view.get_by_role("slider"), view.locator("svg[role=img]")
    model = torch.nn.Linear(32, 2)
    expect(picture).to_have_attribute("aria-label", "conv.weight at step 29: 54 elements")
    view.get_by_label("series").select_option("fc.weight")
    expect(picture).to_have_attribute(
        "aria-label", f"fc.weight at step 29: {model.weight.numel()} elements"
    )
    slider.fill("1")
    expect(picture).to_have_attribute("aria-label", "fc.weight at step 4: 64 elements")
    view.get_by_label("series").select_option("i_pixels_i_histogram")
    given = 16 * 3 * 6 * 6  # the slider stays at its step
    expect(picture).to_have_attribute(
        "aria-label", f"i_pixels_i_histogram at step 4: {given} elements"
    )
    colours = {
        name: view.evaluate(f"one => getComputedStyle(one).getPropertyValue('--nbp-{name}')")
        for name in ("brand", "ink")
    }
    assert all(colours.values())
