"""Images, sounds, texts and histograms of a record in a panel, with one slider."""

from collections.abc import Iterator
from dataclasses import replace
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
from tests.browser.access import findings
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
    view = draw_view(panel, run, name)
    expect(view.get_by_role("slider")).to_be_visible()
    return view


def draw_view(panel: PanelPage, run: nbp.OpenedRun, name: str, *others: str) -> Locator:
    """Return a view of the panel, with the first of other runs next to this one."""
    draw, file = ALL[name]
    text = "\n".join((HERE / one).read_text("utf-8") for one in ("stepper.js", file))
    panel.say({"v": 1, "type": "esm", "view": name, "text": text})
    selection = replace(fresh_selection(run), others=others)
    message, buffers = frame_of(draw(run, selection), name, text, WIDTH, 1.0)
    panel.say({**message, "seq": 1}, [bytes(buffer) for buffer in buffers])
    return panel.root.locator(f'.nbp-own[data-view="{name}"]')


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


# ---------------------------------------------------------------- several media, two runs

STEPS = (0, 10, 20, 30)
SHAPE = (4, 6, 3)
RATE = 8000


def recorded(place: Path, name: str, shade: int) -> None:
    """Four pictures, sounds and texts."""
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbp.watch(model, optimizer, store=place, name=name, probes=None) as run:
        run.annotate(sample_rate=RATE)
        for step in range(STEPS[-1] + 1):
            model(torch.ones(1, 1)).sum().backward()
            if step in STEPS:
                run.log_array("drawn_image", torch.full(SHAPE, float(shade + step)))
                run.log_array("said_audio", torch.linspace(-1, 1, 800) * (step + 1) / 31)
                run.note("sample", f"{name} says <b>{step}</b>")
            optimizer.step()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    recorded(folder / "today.zarr", "today", 100)
    recorded(folder / "yesterday.zarr", "yesterday", 10)
    return folder


@pytest.fixture
def media(bare: PanelPage, two: Path) -> Iterator[tuple[PanelPage, dict[str, Locator]]]:
    """Images, sounds and texts of today's run, next to yesterday's."""
    run, panel = nbp.open_run(two / "today.zarr"), bare.show(1100, lab=True)
    panel.say(model_message())
    panel.say(status_message())
    panel.say(selection_message())
    names = ["images", "audio", "texts"]
    rows = [view_row(name, cost_s=0.01, every_s=1.0) for name in names]
    panel.say({"v": 1, "type": "views", "rows": rows})
    other = str(two / "yesterday.zarr")
    yield panel, {name: draw_view(panel, run, name, other) for name in names}
    assert panel.errors == []


@pytest.mark.slow
def test_one_slider_moves_images_sounds_and_texts_of_two_runs(
    media: tuple[PanelPage, dict[str, Locator]],
) -> None:
    panel, views = media
    views["texts"].get_by_role("slider").fill("1")
    for view in views.values():
        expect(view.get_by_role("slider")).to_have_attribute("aria-valuetext", "step 10")
        captions = view.locator("figcaption")
        expect(captions).to_have_text(["today, step 10", "yesterday, step 10"])
    own, other = views["images"].locator("canvas").all()
    assert np.unique(pixels(own)).tolist() == [110]
    assert np.unique(pixels(other)).tolist() == [20]
    expect(views["texts"].locator(".nbp-noted")).to_have_text(
        ["today says <b>10</b>", "yesterday says <b>10</b>"]
    )
    panel.picture("summary-media")
    assert findings(panel.page, ".nbp-panel") == []


def test_a_sound_is_the_samples_that_were_recorded(
    media: tuple[PanelPage, dict[str, Locator]],
) -> None:
    _, views = media
    player = views["audio"].locator("audio").first
    expect(player).to_have_attribute("aria-label", "said_audio at step 30")
    expect(player).to_have_js_property("duration", 800 / RATE)


@pytest.mark.slow
def test_play_goes_through_the_steps_and_stops_at_the_last(
    media: tuple[PanelPage, dict[str, Locator]],
) -> None:
    panel, views = media
    play = views["images"].get_by_role("button", name="play")
    slider = views["texts"].get_by_role("slider")
    slider.evaluate(
        """(slider) => {
          window.passed = [];
          new MutationObserver(() => passed.push(slider.getAttribute("aria-valuetext")))
            .observe(slider, { attributeFilter: ["aria-valuetext"] });
        }"""
    )
    assert play.evaluate("(button) => { button.click(); return button.ariaLabel; }") == "pause"
    expect(slider).to_have_attribute("aria-valuetext", f"step {STEPS[-1]}")
    expect(play).to_be_visible()
    assert panel.page.evaluate("passed") == [f"step {step}" for step in STEPS]


def test_a_run_that_cannot_be_read_leaves_this_one_alone(bare: PanelPage, two: Path) -> None:
    run = nbp.open_run(two / "today.zarr")
    shown(bare, run, "texts", "light")
    view = draw_view(bare, run, "texts", str(two / "gone.zarr"))
    expect(view.locator(".nbp-noted")).to_have_text(["today says <b>30</b>"])
    expect(view.locator("figcaption")).to_have_text([""])
