"""A run whose budget has stretched the schedules: values stand, and the tips name their steps."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.measured_steps import CARRIED
from notebook_probe.explorer.draw.vectors import Vectors
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.figures.heat import read_grid
from notebook_probe.record.views.thinning.heat_grid import UNMEASURED
from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage
from tests.explorer.draw.test_vectors import BINS, Histograms, source_of

THIN = "\u202f"
N_STEPS = 700
HOME = "grad_norm"
DETACHED_FROM = 500
TIP = re.compile(r"(?:step|steps) ([\d\u202f]+)(?:–([\d\u202f]+))?(?:, measured at ([\d\u202f]+))?")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nbp.OpenedRun:
    """A watch with a budget that always stretches schedules, however busy the machine is."""
    torch.manual_seed(0)
    parts = [part for _ in range(9) for part in (nn.Linear(8, 8), nn.Tanh())]
    model = nn.Sequential(*parts, nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    store = tmp_path_factory.mktemp("no_holes") / "stretched.zarr"
    run = nbp.watch(model, optimizer, store=store, budget=0.5)
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    for step in range(N_STEPS):
        if step == DETACHED_FROM:
            run.detach("4")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss.item())
    run.close()
    return nbp.open_run(store)


@pytest.fixture(scope="module")
def file(run: nbp.OpenedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.to_html(tmp_path_factory.mktemp("file") / "run.html")


@pytest.fixture(params=["light", "dark"])
def saved(request: pytest.FixtureRequest, bare: PanelPage, file: Path) -> Iterator[PanelPage]:
    """The one file in a browser."""
    bare.page.emulate_media(color_scheme=request.param)
    bare.page.set_viewport_size({"width": 1100, "height": 900})
    bare.page.goto(file.as_uri())
    expect(bare.heat).to_have_attribute("data-quantity", re.compile("."))
    bare.page.locator(f".nbp-quantities [data-quantity={HOME}]").click()
    expect(bare.heat).to_have_attribute("data-quantity", HOME)
    bare.wait_frame()
    yield bare
    bare.forget()


def tip_at(panel: PanelPage, canvas: Any, step: float, row: float) -> Any:
    """Point at the middle of a step in a row, counted from the top in shares of all rows."""
    box = canvas.bounding_box()
    _, top, _, bottom = json.loads(canvas.get_attribute("data-box"))
    x = panel.x_of_step(canvas, step + 0.5)
    panel.page.mouse.move(box["x"] + x, box["y"] + top + row * (bottom - top))
    return panel.page.locator(".nbp-plot").filter(has=canvas).locator(".nbp-tip")


def swatch_pixel(swatch: Any, x: int, y: int) -> tuple[int, ...]:
    """RGBA of a pixel of the strip in the tree."""
    found = swatch.evaluate(
        """(canvas, [x, y]) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data]""", [x, y]
    )
    return tuple(found)


def numbers(text: str) -> tuple[int, int | None, float | None]:
    """Step, the measured one and the value, as a tip says them."""
    found = TIP.search(text)
    assert found is not None, text
    step, _, measured = (
        None if one is None else int(one.replace(THIN, "")) for one in found.groups()
    )
    value = re.search(rf"{HOME}\s+([\d.e−]+)", text)
    assert step is not None
    return step, measured, None if value is None else float(value[1].replace("−", "-"))


def test_the_budget_left_no_hole_and_every_tip_names_a_measured_step(
    saved: PanelPage, run: nbp.OpenedRun, request: pytest.FixtureRequest
) -> None:
    rows = int(saved.heat.get_attribute("data-rows") or 0)
    grid = read_grid(run, HOME)
    assert grid is not None
    assert rows == len(grid.modules)
    detached = grid.modules.index("4")
    assert grid.carried.any(), "the budget stretched"
    hatched = grid.state == UNMEASURED
    others = np.delete(hatched, detached, axis=0)
    assert not others.any()
    assert hatched[detached, -1]
    n_carried = 0
    for step in (150, 333, 480, 611, N_STEPS - 2):
        for row in (0, rows - 1):
            tip = tip_at(saved, saved.heat, step, (row + 0.5) / rows)
            expect(tip).to_contain_text(grid.modules[row])
            shown, measured, value = numbers(tip.inner_text())
            series = run.series(grid.modules[row], HOME)
            assert shown in (step, step - 1)
            if measured is not None:
                n_carried += 1
                assert measured < shown
                assert measured == int(series.step[series.step <= shown][-1])
                assert value == pytest.approx(float(series.sel(step=measured)), rel=1e-2)
    assert n_carried
    saved.picture(f"no-holes-{request.node.callspec.id}")
    for neighbor in (grid.modules[detached - 1], grid.modules[detached + 1]):
        swatch = saved.row(neighbor).locator("canvas")
        inks = {swatch_pixel(swatch, x=120, y=y) for y in (0, 3, 6, 9)}
        assert len(inks) == 1, "the hatching beside it is not blended into the row's strip"
        assert inks.pop()[3] == 255
    tip = tip_at(saved, saved.heat, DETACHED_FROM + 100, (detached + 0.5) / rows)
    expect(tip).to_contain_text(f"{HOME}: not measured, no longer attached")


def live(panel: PanelPage) -> PanelPage:
    panel.show()
    panel.say(model_message())
    panel.say(status_message(recorded={HOME: ["stem.conv1", "stem.bn1"]}))
    panel.say(selection_message(home=HOME, series=[]))
    return panel


def test_a_tip_names_the_measured_step_of_a_cell_in_wide_columns(bare: PanelPage) -> None:
    """Columns of 4 steps: measured at 2 of the first, then nothing, then at 15; up to step 18."""
    panel = live(bare)
    cells = [[5.0, 7.0, 7.0, 9.0, 11.0], [np.nan, 2.0, 2.0, 2.0, 2.0]]
    message, buffers = heat_message(
        cells,
        ["stem.conv1", "stem.bn1"],
        last_step=19,
        end_step=18,
        unmeasured=np.isnan(cells),
        carried=[[0, 1, 1, 0, 0], [0, 0, 1, 1, 1]],
        offsets=np.array([[2, 0, 0, 3, 1], [0, 1, 0, 0, 0]], np.uint8),
        maximum=[[6.0, 7.0, 7.0, 9.0, 11.0], [np.nan, 2.0, 2.0, 2.0, 2.0]],
    )
    panel.draw(message, buffers)
    for step, row, words in [
        (1, 0, "steps 0–3"),
        (5, 0, "step 5, measured at 2"),
        (11, 0, "step 11, measured at 2"),
        (13, 0, "steps 12–15"),
        (17, 0, "steps 16–18"),
        (2, 1, "steps 0–3"),
        (18, 1, "step 18, measured at 5"),
    ]:
        tip = tip_at(panel, panel.heat, step, (row + 0.5) / 2)
        expect(tip.locator(".nbp-tip-head")).to_contain_text(words)
    _, top, _, bottom = json.loads(panel.heat.get_attribute("data-box") or "")
    inside, beyond = (
        panel.pixel(panel.heat, panel.x_of_step(panel.heat, step), top + (bottom - top) / 4)
        for step in (18.5, 19.5)
    )
    assert inside != beyond
    assert beyond == panel.pixel(panel.heat, 1, top + 1), "the map ends where the run does"


def test_a_zoom_between_two_measurements_names_the_step_before_it(bare: PanelPage) -> None:
    panel = live(bare)
    panel.say(selection_message(home=HOME, series=[], window=(200, 209)))
    message, buffers = heat_message(
        np.full((1, 10), 3.5),
        ["stem.conv1"],
        first_step=200,
        carried=np.ones((1, 10)),
        before=[128],
        limits=(1, 10),
    )
    panel.draw(message, buffers)
    tip = tip_at(panel, panel.heat, 204, 0.5)
    expect(tip).to_contain_text("step 204, measured at 128")
    expect(tip).to_contain_text("3.5")


def test_a_folded_row_names_the_newest_step_of_its_modules(bare: PanelPage) -> None:
    panel = live(bare)
    panel.say(selection_message(home=HOME, series=[], folds=["stem"]))
    cells = np.full((1, 8), 2.0)
    panel.draw(
        *heat_message(
            cells, ["stem"], maximum=2 * cells, carried=[[0, 0, 1, 1, 1, 1, 1, 1]], limits=(1, 10)
        )
    )
    tip = tip_at(panel, panel.heat, 5, 0.5)
    expect(tip).to_contain_text("step 5, newest value at 1")
    expect(tip).to_contain_text("in the mean")
    expect(tip).to_contain_text("at most 4")


def test_the_frames_of_the_kernel_say_the_same(bare: PanelPage, run: nbp.OpenedRun) -> None:
    """The painter's own message, decoded in the browser, against the record."""
    made = Heat().frame(run, PanelSelection(home=HOME), 200)
    assert made is not None
    message, buffers = made
    grid_states = np.frombuffer(buffers[1], np.uint8)
    assert (grid_states & CARRIED).any()
    bare.show()
    steps = bare.evaluate(
        """([message, texts]) => {
          const views = texts.map((text) => new DataView(
            Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));
          const frame = parts.decodeHeat(message, views);
          return frame.rows.map((_, row) => Array.from({ length: frame.columns },
            (_, column) => parts.measuredStep(frame, row, column))); }""",
        [dict(message), [base64.b64encode(buffer).decode() for buffer in buffers]],
    )
    mean = np.frombuffer(buffers[0], "<f4").reshape(len(message["rows"]), message["columns"])
    states = grid_states.reshape(mean.shape)
    for row, module in enumerate(message["rows"]):
        series = run.series(module, HOME)
        recorded = dict(zip(series.step.values.tolist(), series.values.tolist(), strict=True))
        for column, step in enumerate(steps[row]):
            if step is None:
                assert states[row, column] % CARRIED == UNMEASURED
                continue
            assert step in recorded
            if states[row, column] & CARRIED:
                assert mean[row, column] == np.float32(recorded[step])


def test_a_vector_stands_and_its_tip_names_the_measured_step(bare: PanelPage) -> None:
    counts = np.full((3, 1, 6), 10.0, np.float32)
    stream = Histograms(["stem.conv1"], BINS)
    stream.append([0, 40, 80], histogram=counts)
    source = source_of(stream)
    made = Vectors().frame(source, PanelSelection("histogram"), 600)
    assert made is not None
    message, buffers = made
    panel = bare.show()
    panel.say(model_message())
    panel.say(status_message(vectors={"histogram": "bars"}))
    panel.say(selection_message(home="histogram", log_heat=None, log_y=None, series=[]))
    panel.draw({**message, "seq": 1}, [bytes(one) for one in buffers])
    canvas = panel.page.locator(".nbp-vectors")
    box = canvas.bounding_box()
    assert box is not None
    left, _, right, _ = json.loads(canvas.get_attribute("data-box") or "")
    low, high = json.loads(canvas.get_attribute("data-axis") or "")
    x = left + (right - left) * (60.5 - low) / (high - low)
    panel.page.mouse.move(box["x"] + x, box["y"] + 30)
    tip = panel.page.locator(".nbp-plot").filter(has=canvas).locator(".nbp-tip")
    expect(tip).to_contain_text("step 60, measured at 40")


def test_lines_connect_the_measured_points(bare: PanelPage) -> None:
    """A line through what was measured at 0, 100 and 200 has ink between the points."""
    panel = live(bare)
    series = {("stem.conv1", HOME): (np.array([0, 100, 200]), np.array([1.0, 1.0, 1.0]))}
    panel.say(selection_message(home=HOME, series=[("stem.conv1", HOME)], smooth=0.0))
    panel.draw(*lines_message(series, smooth=0.0))
    _, top, _, bottom = json.loads(panel.lines.get_attribute("data-box") or "")
    ground = panel.pixel(panel.lines, panel.x_of_step(panel.lines, 50), top + 1)
    for step in (30, 50, 150, 170):
        x = panel.x_of_step(panel.lines, step)
        inks = [panel.pixel(panel.lines, x, y) for y in range(int(top) + 1, int(bottom))]
        assert any(ink != ground for ink in inks), f"nothing at step {step}"
