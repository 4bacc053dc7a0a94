"""The panel as one file, opened from disk with the network denied: what works, what it says."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.saved_views import ViewFile, ViewSettings
from tests.browser.lab import PATIENCE_S
from tests.browser.panel_page import PanelPage
from tests.explorer.parts.test_history import branched

HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>"
N_STEPS = 610
LAST = N_STEPS - 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nbp.OpenedRun:
    """More than 60 modules, one of which is called after an attack; a NaN at the end."""
    torch.manual_seed(0)
    layers = [(f"block{k}", nn.Sequential(nn.Linear(6, 6), nn.Tanh())) for k in range(21)]
    model = nn.Sequential(
        OrderedDict([(HOSTILE, nn.Linear(6, 6)), *layers, ("head", nn.Linear(6, 3))])
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    store = tmp_path_factory.mktemp("handed_on") / "digits-cnn.zarr"
    run = nbp.watch(
        model, optimizer, store=store, budget=None, probes={"*": ["update_ratio", "grad_norm"]}
    )
    run.attach("block1.0", "output_log_histogram", "every(7)")
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    for step in range(N_STEPS):
        if step in (300, 600):
            run.look("block1.0")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss.item() if step < LAST else float("nan"))
    nbp.keep_output(run)
    print(f"the end, {HOSTILE}")
    run.close()
    return nbp.open_run(store)


@pytest.fixture(scope="module")
def file(run: nbp.OpenedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.to_html(tmp_path_factory.mktemp("file") / "run.html")


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A page without a network."""
    context = browser.new_context(offline=True, accept_downloads=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


@pytest.fixture
def opened(page: Page, file: Path) -> Iterator[PanelPage]:
    """The file, opened anew; nothing is asked for but the file and what it holds."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    panel = PanelPage(page)
    open_file(panel, file)
    yield panel
    assert not panel.errors
    outside = [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
    assert not outside, f"the file asked for something: {outside}"
    assert page.evaluate("window.hacked") is None
    expect(page.locator(".nbp-trouble")).to_be_hidden()


def open_file(panel: PanelPage, file: Path, width: int = 880, theme: Any = "light") -> None:
    panel.page.emulate_media(color_scheme=theme)
    panel.page.set_viewport_size({"width": width + 32, "height": 800})
    panel.page.goto(file.as_uri())
    expect(panel.lines).to_have_attribute("data-series", '["loss"]')
    expect(panel.heat).to_have_attribute("data-quantity", "update_ratio")
    panel.wait_frame()


def hover(panel: PanelPage, canvas: Any, step: float, share: float = 0.5) -> Any:
    """Point at a step; returns the tip beside it."""
    box = canvas.bounding_box()
    _, top, _, bottom = json.loads(canvas.get_attribute("data-box"))
    x = panel.x_of_step(canvas, step)
    panel.page.mouse.move(box["x"] + x, box["y"] + top + share * (bottom - top))
    return panel.page.locator(".nbp-plot").filter(has=canvas).locator(".nbp-tip")


def test_it_says_what_it_is_and_offers_nothing_that_needs_a_kernel(
    opened: PanelPage, run: nbp.OpenedRun, file: Path
) -> None:
    bar = opened.page.locator(".nbp-bar")
    expect(bar).to_contain_text("finished")
    expect(bar).to_contain_text(f"at step {N_STEPS} ")
    line = opened.page.locator(".nbp-saved-line")
    expect(line).to_contain_text("No kernel: hovering, zooming and selecting still work.")
    expect(line.locator("code")).to_have_text(f'nbp.open_run("{run.location}").explore()')
    for gone in ("pause", "step", "stop", "attach", "dock", "look", "breaks"):
        expect(opened.action(gone)).not_to_be_visible()
    expect(opened.page.locator("[data-role=rows]")).not_to_be_visible()
    size = file.stat().st_size
    assert size <= 2_000_000
    kb = opened.page.locator(".nbp-place").inner_text()
    said, _, _ = kb.replace("\u202f", "").partition("kB in this file · full record")
    assert float(said) * 1000 == pytest.approx(size, rel=0.05)


def test_hover_says_what_was_recorded(opened: PanelPage, run: nbp.OpenedRun) -> None:
    rows = json.loads(opened.heat.get_attribute("data-rows") or "0")
    tip = hover(opened, opened.heat, 350.5, 0.5 / rows)
    expect(tip).to_contain_text(HOSTILE)
    columns = int(opened.heat.get_attribute("data-columns") or 0)
    size = -(-N_STEPS // columns)
    first = 350 // size * size
    values = run.series(HOSTILE, "update_ratio").sel(step=slice(first, first + size - 1))
    told = tip.inner_text().replace("\u202f", "").replace("−", "-")
    assert f"{first}–{first + size - 1}" in told
    assert float(told.split("update_ratio")[1].split()[0]) == pytest.approx(
        float(values.mean()), rel=2e-5
    )
    assert float(told.split("at most")[1].split()[0]) == pytest.approx(
        float(values.max()), rel=2e-5
    )

    tip = hover(opened, opened.lines, 350)
    told = tip.inner_text().replace("\u202f", "").replace("−", "-")
    step = int(told.split("step ")[1].split()[0])
    assert abs(step - 350) <= 3
    loss = float(run.series("(root)", "loss").sel(step=step))
    assert float(told.split("loss")[1].split()[0]) == pytest.approx(loss, rel=1e-5)


def test_quantities_and_modules_are_picked_and_drawn(opened: PanelPage, run: nbp.OpenedRun) -> None:
    opened.page.locator(".nbp-chip[data-quantity=grad_norm]").click()
    expect(opened.heat).to_have_attribute("data-quantity", "grad_norm")
    opened.heat.click(position={"x": opened.x_of_step(opened.heat, 100), "y": 5})
    wanted = ["loss", f"{HOSTILE} · grad_norm"]
    opened.page.wait_for_function(
        "([one, wanted]) => one.dataset.series === JSON.stringify(wanted)",
        arg=[opened.lines.element_handle(), wanted],
    )
    points = json.loads(opened.lines.get_attribute("data-points") or "[]")
    columns = int(opened.heat.get_attribute("data-columns") or 0)
    assert points == [N_STEPS, columns]
    averages = json.loads(opened.lines.get_attribute("data-averages") or "[]")
    assert averages == points, "the loss has one at its NaN, too, which is none"

    opened.page.locator(".nbp-chip[data-quantity=output_log_histogram]").click()
    expect(opened.page.locator("canvas.nbp-vectors")).to_be_visible()
    opened.picture("handed_on_vectors")


def test_zoom_is_of_both_plots_and_back(opened: PanelPage) -> None:
    box = opened.heat.bounding_box()
    assert box is not None
    y = box["y"] + 20
    opened.page.mouse.move(box["x"] + opened.x_of_step(opened.heat, 200), y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + opened.x_of_step(opened.heat, 400), y, steps=3)
    opened.page.mouse.up()
    for canvas in (opened.heat, opened.lines):
        opened.page.wait_for_function(
            "(one) => { const [low, high] = JSON.parse(one.dataset.axis);"
            " return Math.abs(low - 200) < 3 && Math.abs(high - 400) < 3; }",
            arg=canvas.element_handle(),
        )
    opened.picture("handed_on_zoomed")
    opened.page.locator("[data-role=reset]").click()
    opened.page.wait_for_function(
        "(one) => JSON.parse(one.dataset.axis)[1] >= 609", arg=opened.lines.element_handle()
    )


def test_n_opens_the_alerts_and_show_goes_there(opened: PanelPage) -> None:
    opened.root.focus()
    opened.page.keyboard.press("n")
    row = opened.page.locator(".nbp-drawer").locator("[data-action=show]").first
    expect(row).to_be_visible()
    opened.picture("handed_on_alerts")
    row.click()
    expect(opened.page.locator(".nbp-plot:has(canvas.nbp-lines) .nbp-cursor")).to_be_visible()


@pytest.mark.parametrize(("theme", "blue"), [("light", (11, 98, 196)), ("dark", (88, 166, 255))])
def test_the_line_beside_the_last_value_has_the_colour_of_the_theme(
    opened: PanelPage, file: Path, theme: str, blue: tuple[int, int, int]
) -> None:
    open_file(opened, file, 1240, theme)
    spark = opened.page.locator(".nbp-spark")
    expect(spark).to_be_visible()
    assert opened.count_colour(spark, blue) > 20
    assert opened.count_colour(spark, (0, 0, 0)) == 0


def painted_swatches(panel: PanelPage) -> int:
    """Rows of the tree with anything but a line beside them."""
    found: int = panel.page.evaluate(
        """() => [...document.querySelectorAll('.nbp-row:not([data-module="(root)"]) canvas')]
          .filter((one) => one.width && one.offsetParent && one.getContext("2d")
            .getImageData(0, 0, one.width, one.height).data.some((byte) => byte)).length"""
    )
    return found


def test_what_was_not_saved_says_so(page: Page, run: nbp.OpenedRun, tmp_path: Path) -> None:
    from notebook_probe.explorer.draw.view import fresh_selection
    from notebook_probe.explorer.handed_on.package import Looked, Packer
    from notebook_probe.explorer.handed_on.page import page as page_of
    from notebook_probe.explorer.messages.opened_status import OpenedStatus

    looked = Looked(fresh_selection(run))
    package = Packer(run).package(looked, OpenedStatus(run).head(), "notebook")
    file = tmp_path / "kept.html"
    file.write_text(page_of(package.text, "kept", b""), encoding="utf-8")
    panel = PanelPage(page)
    open_file(panel, file)
    assert painted_swatches(panel) > 5
    panel.page.locator(".nbp-chip[data-quantity=grad_norm]").click()
    note = panel.page.locator(".nbp-plot:has(canvas.nbp-heat) .nbp-note")
    expect(note).to_have_text("grad_norm was not saved with the notebook")
    assert painted_swatches(panel) == 0, "nor are there swatches of another quantity"
    panel.page.locator(".nbp-chip[data-quantity=update_ratio]").click()
    expect(note).to_be_hidden()


def test_code_runs_and_data_are_the_saved_columns(
    opened: PanelPage, run: nbp.OpenedRun, tmp_path: Path
) -> None:
    opened.page.locator("[data-export=code]").click()
    text = opened.page.locator("textarea[aria-label=Code]").input_value()
    namespace: dict[str, Any] = {}
    exec(text.replace("import matplotlib.pyplot as plt", "").partition("\n# ")[0], namespace)
    assert namespace["record"].location == run.location
    # One chart with one series, on the axis that the panel has.
    assert 'in zip(charts.flat, ["log"], [[["(root)","loss"]]]):' in text
    compile(text, "code", "exec")

    opened.page.get_by_role("button", name="Data ↓").click()
    with opened.page.expect_download() as found:
        opened.page.locator("[data-export=csv]").click()
    with found.value.path().open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    losses = {int(row["step"]): float(row["value"]) for row in rows if row["quantity"] == "loss"}
    recorded = run.series("(root)", "loss").to_series()
    assert len(losses) == N_STEPS - 1, "all but the one that is NaN"
    assert np.allclose([recorded[step] for step in losses], [*losses.values()], rtol=1e-6)
    assert any(row["module"] == HOSTILE and row["quantity"] == "update_ratio" for row in rows)
    expect(opened.page.locator("[data-role=export]")).to_contain_text(
        "the saved columns, not every step"
    )

    opened.page.get_by_role("button", name="Picture ↓").click()
    with opened.page.expect_download() as found:
        opened.page.locator("[data-export=png]").click()
    assert Path(found.value.path()).read_bytes().startswith(b"\x89PNG")
    opened.page.get_by_role("button", name="Data ↓").click()
    opened.page.locator("[data-export=netcdf]").click()
    expect(opened.page.locator("[data-role=export]")).to_contain_text("nbp.open_run(")


def test_lines_over_epochs_are_where_a_kernel_has_them(page: Page, tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    run = nbp.watch(model, store=tmp_path / "epochs.zarr", probes=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch, n_batches in enumerate((4, 8, 8)):
        for _ in range(n_batches):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            run.log(loss=0.5**epoch, epoch=epoch)
    run.close()
    record = nbp.open_run(tmp_path / "epochs.zarr")
    panel = PanelPage(page)
    page.goto(record.to_html(tmp_path / "epochs.html").as_uri())
    panel.action("line-options").click()
    page.locator("[data-role=x-axis] [data-value=epoch]").click()
    page.keyboard.press("Escape")
    expect(panel.action("line-options")).to_contain_text("epoch")
    expect(panel.lines).to_have_attribute("data-axis", "[0,2.875]")
    tip = hover(panel, panel.lines, 1.5)
    expect(tip).to_contain_text("step 8 · epoch 1.5")
    panel.picture("handed_on_epochs")
    page.locator("[data-export=code]").click()
    text = page.locator("textarea[aria-label=Code]").input_value()
    assert "axes.plot(epochs.at(series.step), series" in text
    assert 'xlabel="epoch"' in text
    page.get_by_role("button", name="Data ↓").click()
    with page.expect_download() as found:
        page.locator("[data-export=csv]").click()
    rows = csv.DictReader(found.value.path().read_text(encoding="utf-8").splitlines())
    steps = [int(row["step"]) for row in rows if row["quantity"] == "loss"]
    assert steps == [*range(20)]
    assert not panel.errors


def test_chosen_colors_are_kept_and_chosen_in_a_file(page: Page, tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, store=tmp_path / "colors.zarr", probes=None) as run:
        for step in range(5):
            model(torch.ones(1, 2)).sum().backward()
            run.log(loss=0.5**step)
            optimizer.step()
    record = nbp.open_run(tmp_path / "colors.zarr")
    loss = ("(root)", "loss")
    colored = ViewSettings(series=(loss,), chosen_colors=((*loss, 2),))
    ViewFile.of(record).save("colored", colored)
    panel = PanelPage(page)
    page.goto(record.to_html(tmp_path / "colors.html", view="colored").as_uri())
    chip = panel.root.locator(".nbp-chip.nbp-on")
    expect(chip).to_have_attribute("style", re.compile("--nbp-stroke: rgb\\(0 158 115\\)"))
    page.get_by_role("button", name="Color of loss").click()
    page.get_by_role("radio", name="vermilion, solid").click()
    expect(chip).to_have_attribute("style", re.compile("--nbp-stroke: rgb\\(213 94 0\\)"))
    page.keyboard.press("Escape")
    page.locator("[data-export=code]").click()
    text = page.locator("textarea[aria-label=Code]").input_value()
    assert 'in [["(root)","loss",1]]}' in text
    compile(text, "code", "exec")
    assert not panel.errors


def test_looks_that_were_saved_are_shown(opened: PanelPage) -> None:
    opened.row("block1.0").click()
    opened.root.focus()
    opened.page.keyboard.press("l")
    expect(opened.page.locator(".nbp-look")).to_be_visible()
    expect(opened.page.locator(".nbp-look-place")).to_contain_text("2 of 2 kept")
    opened.page.locator("[data-role=look-other]").select_option(index=1)
    expect(opened.page.locator(".nbp-look-difference")).to_be_visible()
    opened.picture("handed_on_look")


def test_it_stands_at_three_widths_in_both_themes(page: Page, file: Path) -> None:
    panel = PanelPage(page)
    for theme in ("light", "dark"):
        for width in (640, 880, 1280):
            open_file(panel, file, width, theme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            panel.picture(f"handed_on_{theme}_{width}")


def test_what_was_printed_is_in_the_file(opened: PanelPage) -> None:
    opened.action("output").click()
    log = opened.page.get_by_role("log", name="Last lines")
    assert log.locator(".nbp-output-line").all_inner_texts() == [f"{N_STEPS}\nthe end, {HOSTILE}"]
    expect(opened.page.get_by_role("button", name="Keep the output")).to_be_hidden()
    opened.picture("handed_on_output")


def test_a_branch_has_its_strip_and_the_line_that_was_left(page: Page, tmp_path: Path) -> None:
    branched(tmp_path / "branched.zarr")
    record = nbp.open_run(tmp_path / "branched.zarr")
    panel = PanelPage(page)
    page.goto(record.to_html(tmp_path / "branched.html").as_uri())
    strip = panel.root.locator(".nbp-history")
    expect(strip).to_contain_text("before, to step 18")
    expect(strip).to_contain_text("now, from step 5")
    page.wait_for_function(
        "axis => JSON.parse(axis.dataset.axis)[1] >= 18", arg=panel.heat.element_handle()
    )
    expect(panel.root.locator(".nbp-branch")).to_have_text("branch 3")
    expect(panel.root.locator(".nbp-left-mark")).to_have_count(1)
    box = panel.heat.bounding_box()
    assert box is not None
    left, _, right, _ = json.loads(panel.heat.get_attribute("data-box") or "")
    page.mouse.move(box["x"] + left + 0.8 * (right - left), box["y"] + 60)
    expect(panel.page.locator(".nbp-tip:visible")).to_contain_text(
        "on the parent branch, left at step 5"
    )
    panel.picture("handed-on-branch")
    assert not panel.errors


def test_a_run_without_a_step_has_no_date_and_no_vectors(page: Page, tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    run = nbp.watch(model, store=tmp_path / "none.zarr")
    run.attach("", "output_histogram")
    run.close()
    page.goto(nbp.open_run(run.location).to_html(tmp_path / "none.html").as_uri())
    expect(page.locator(".nbp-empty")).to_have_text("This record has no values.")
    expect(page.locator(".nbp-end")).to_have_text("")


@pytest.mark.slow
def test_a_damaged_part_of_the_record_is_named_below_the_bar(
    run: nbp.OpenedRun, page: Page, tmp_path: Path
) -> None:
    place = tmp_path / "run.zarr"
    shutil.copytree(run.location, place)
    chunk = next(one for one in place.rglob("grad_norm/c/*/*") if one.is_file())
    chunk.write_bytes(b"garbage" * 9)
    page.goto(nbp.open_run(place).to_html(tmp_path / "run.html").as_uri())
    expect(page.locator(".nbp-unreadable")).to_contain_text(f"cannot read {chunk}:")
    expect(page.locator(".nbp-left-out")).to_be_hidden()
