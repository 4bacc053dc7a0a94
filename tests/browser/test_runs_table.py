"""The table of runs: sorted by a click on a head, a run opened by a click on its row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from notebook_probe.explorer.runs_table.runs_table import _css, _esm
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import view_of
from tests.browser.explorer_page import PICTURES
from tests.browser.lab import PATIENCE_S, OpenNotebook
from tests.browser.panel_page import SCREENSHOTS, theme_variables

pytestmark = pytest.mark.browser

RENDER = """
async ([source, styles, table]) => {
  const sheet = document.createElement("style");
  sheet.textContent = styles;
  document.head.append(sheet);
  const state = { table, chosen: "", said: "" };
  const heard = {};
  window.fake = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; heard[`change:${name}`]?.(); },
    save_changes: () => { window.saved = state.chosen; },
    on: (name, run) => { heard[name] = run; },
    off: (name) => { delete heard[name]; },
  };
  window.heard = heard;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const view = await import(url);
  window.cleanUp = view.default.render({ model: fake, el: document.getElementById("cell") });
}
"""
RUNS: list[dict[str, Any]] = [
    {"run": f"runs/{name}.zarr", "name": name, "state": "finished", "steps": steps, **more}
    for name, steps, more in [
        ("wide", 1200, {"config.lr": 0.1, "eval.accuracy": 0.91, "config.optimizer": "SGD"}),
        ("deep", 80, {"config.lr": 0.003, "eval.accuracy": 0.97, "config.optimizer": "AdamW"}),
        ("lost", 700, {"config.lr": 3.0, "eval.accuracy": math.nan, "config.optimizer": "SGD"}),
        ("<img src=x onerror=alert(1)>", 5, {"config.lr": 0.03, "config.optimizer": "<b>"}),
    ]
]
TABLE = LineageTable.of(RUNS)


@pytest.fixture(scope="module")
def plain(browser: Browser) -> Iterator[Page]:
    """A page for all tests of the file."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield page
    page.close()


def shown(page: Page, table: LineageTable = TABLE, theme: str = "light", width: int = 880) -> Page:
    page.goto("about:blank")
    page.set_viewport_size({"width": width + 32, "height": 700})
    light = str(theme == "light").lower()
    page.set_content(
        f"<!doctype html><style>:root {{{theme_variables(theme)}}} body {{ background: "
        f"var(--jp-layout-color0) }}</style><body data-jp-theme-light='{light}' "
        f"style='margin: 16px'><div id=cell style='width: {width}px'></div>"
    )
    page.evaluate(RENDER, [_esm(), _css(), view_of(table)])
    expect(page.locator(".nbp-runs tbody tr")).to_have_count(len(table))
    return page


def order(page: Page) -> list[str]:
    return page.locator(".nbp-runs tbody th").all_inner_texts()


def head(page: Page, name: str) -> Any:
    return page.locator(f"thead button[title='sort by {name}']")


def test_a_head_sorts_up_then_down_then_back(plain: Page) -> None:
    page = shown(plain)
    came = order(page)
    button = head(page, "eval.accuracy")
    button.click()
    assert order(page) == TABLE.sort("eval.accuracy")["name"]
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("evalaccuracy ▲")
    head(page, "eval.accuracy").click()
    assert order(page) == TABLE.sort("eval.accuracy", descending=True)["name"]
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    head(page, "eval.accuracy").click()
    assert order(page) == came
    head(page, "config.optimizer").press("Enter")
    assert order(page) == TABLE.sort("config.optimizer")["name"]
    expect(head(page, "config.optimizer")).to_be_focused()


def test_a_row_chooses_its_run_by_mouse_and_keyboard(plain: Page) -> None:
    page = shown(plain)
    head(page, "steps").click()
    page.locator("tbody tr", has_text="wide").click()
    assert page.evaluate("saved") == "runs/wide.zarr"
    expect(page.locator("tr[aria-selected=true] th")).to_have_text("wide")
    page.locator("tbody tr", has_text="lost").press("Enter")
    assert page.evaluate("saved") == "runs/lost.zarr"
    head(page, "steps").click()
    expect(page.locator("tr[aria-selected=true] th")).to_have_text("lost")
    page.evaluate("fake.set('said', 'no record at <b>runs</b>')")
    expect(page.get_by_role("status")).to_have_text("no record at <b>runs</b>")


def test_names_are_text_and_nothing_is_left_behind(plain: Page) -> None:
    page = shown(plain)
    assert page.locator(".nbp-runs img, .nbp-runs tbody b").count() == 0
    assert RUNS[3]["name"] in order(page)
    page.evaluate("cleanUp()")
    assert page.evaluate("Object.keys(heard).length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_many_runs_fit_into_a_cell(plain: Page, theme: str) -> None:
    rows = [
        {
            "run": f"r/{n}.zarr",
            "name": f"run {n}",
            "state": "idle" if n % 9 else "finished",
            **{f"config.model.setting_{k}": (n * 7919 + k) % 97 / 7 for k in range(14)},
        }
        for n in range(100)
    ]
    page = shown(plain, LineageTable.of(rows), theme)
    head(page, "config.model.setting_1").click()
    page.locator("tbody tr").nth(2).click()
    box = page.locator(".nbp-runs").bounding_box()
    assert box is not None
    assert box["width"] <= 880
    assert box["height"] < 460
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"runs_table_{theme}.png")
    shown(plain, TABLE, theme).screenshot(path=SCREENSHOTS / f"runs_table_few_{theme}.png")


RECORD = """
import torch
import notebook_probe as nbp

for lr in (0.1, 0.3):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    place = f"table/lr-{lr}.zarr"
    with nbp.watch(model, optimizer, store=place, name=f"lr {lr}", config={"lr": lr}) as run:
        for step in range(20):
            optimizer.zero_grad()
            model(torch.ones(8, 4)).square().mean().backward()
            optimizer.step()
"""
SHOW = "nbp.open_runs('table/*.zarr').lineage().explore()"


def test_a_click_on_a_row_opens_the_run_below(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([RECORD, SHOW])
    notebook.run(0, 1)
    cell = notebook.locate(1)
    rows = cell.locator(".nbp-runs tbody tr")
    expect(rows).to_have_count(2)
    cell.locator("thead button[title='sort by config.lr']").dblclick()
    expect(rows.first.locator("th")).to_have_text("lr 0.3")
    rows.first.click()
    panel = cell.locator(".nbp-panel")
    expect(panel).to_have_count(1)
    expect(panel.get_by_text("lr 0.3").first).to_be_visible()
    notebook.screenshot(PICTURES / "runs_table.png")
    rows.nth(1).click()
    expect(cell.locator(".nbp-panel").get_by_text("lr 0.1").first).to_be_visible()
    expect(cell.locator(".nbp-panel")).to_have_count(1)
