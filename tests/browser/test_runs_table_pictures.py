"""Pictures of many runs above their table, brushed into it; marks, arrangement and CSV."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from notebook_probe.catalogues.marks import read
from notebook_probe.lineage.table import LineageTable
from tests.browser.access import findings
from tests.browser.lab import PATIENCE_S, LabServer, OpenNotebook
from tests.browser.panel_page import SCREENSHOTS
from tests.browser.table_page import TablePage


def row(k: int) -> dict[str, Any]:
    """A run of a sweep: the best rate is near 3e-3; every 17th run has no accuracy."""
    numbers = random.Random(k)
    rate = 10 ** numbers.uniform(-4, -1)
    loss = 0.2 + 0.3 * abs(math.log10(rate) + 2.5) + numbers.gauss(0, 0.05)
    return {
        "run": f"r/{k}.zarr",
        "name": f"run {k}",
        "state": "finished",
        "steps": 1000,
        "config.lr": rate,
        "config.depth": numbers.choice([2, 4, 8]),
        "config.optimizer": numbers.choice(["AdamW", "Lion", "SGD"]),
        "loss.last": loss,
        "eval.accuracy": 0.98 - loss / 5 if k % 17 else math.nan,
        "tags": ["star"] if k == 3 else [],
    }


SWEEP = [row(k) for k in range(120)]
TABLE = LineageTable.of(SWEEP)
COLUMNS = ["config.lr", "config.depth", "config.optimizer", "loss.last", "eval.accuracy"]


@pytest.fixture(scope="module")
def plain(browser: Browser) -> Iterator[TablePage]:
    page = browser.new_page(accept_downloads=True)
    page.set_default_timeout(PATIENCE_S * 1000)
    yield TablePage(page)
    page.close()


@pytest.fixture
def table(plain: TablePage) -> Iterator[TablePage]:
    yield plain.show(TABLE)
    assert plain.errors == []


def chosen(table: TablePage, kind: str) -> Locator:
    table.page.get_by_role("button", name=kind, exact=True).click()
    canvas = table.page.locator(".nbp-runs-canvas:visible")
    expect(canvas).to_have_attribute("aria-label", re.compile(kind))
    return canvas


def axis(table: TablePage, name: str) -> Locator:
    return table.page.locator(f'.nbp-runs-axes button[data-column="{name}"]')


def x_of(table: TablePage, name: str) -> float:
    return float(axis(table, name).evaluate("(node) => parseFloat(node.style.left)"))


def drag(table: TablePage, canvas: Locator, start: tuple[float, float], end: Any) -> None:
    box = canvas.bounding_box()
    assert box is not None
    mouse = table.page.mouse
    mouse.move(box["x"] + start[0], box["y"] + start[1])
    mouse.down()
    mouse.move(box["x"] + (start[0] + end[0]) / 2, box["y"] + (start[1] + end[1]) / 2)
    mouse.move(box["x"] + end[0], box["y"] + end[1])
    mouse.up()


def said(table: TablePage, n: int) -> None:
    expect(table.said).to_have_text(f"{n} of 120 runs" if n < 120 else "120 runs")


TOP, BOTTOM = 52, 246
"""Ends of the parallel axes, in pixels."""


def rate_at(y: float) -> float:
    rates = [one["config.lr"] for one in SWEEP]
    share = (BOTTOM - y) / (BOTTOM - TOP)
    return float(min(rates) * (max(rates) / min(rates)) ** share)


def test_parallel_axes_are_of_settings_and_then_of_results(table: TablePage) -> None:
    chosen(table, "parallel")
    names = table.page.locator(".nbp-runs-axes button")
    expect(names).to_have_count(len(COLUMNS))
    assert [one.get_attribute("data-column") for one in names.all()] == COLUMNS
    expect(axis(table, "config.lr")).to_contain_text("lr (log)")
    expect(axis(table, "loss.last")).to_have_text("losslast")
    expect(table.page.get_by_label("color")).to_have_value("eval.accuracy")
    chosen_again = table.page.get_by_role("button", name="parallel", exact=True)
    chosen_again.click()
    expect(table.page.locator(".nbp-runs-picture")).to_be_hidden()


def test_a_range_along_an_axis_leaves_its_runs_in_the_table(table: TablePage) -> None:
    canvas = chosen(table, "parallel")
    x = x_of(table, "config.lr")
    drag(table, canvas, (x, 90), (x, 150))
    low, high = rate_at(150), rate_at(90)
    within = [one["name"] for one in SWEEP if low <= one["config.lr"] <= high]
    assert 10 < len(within) < 110
    said(table, len(within))
    table.head("steps").click()
    assert set(table.order()) <= set(within)
    chip = table.page.get_by_role("group", name="Ranges").get_by_role("button")
    expect(chip).to_contain_text("config.lr 0.")
    # A second one leaves what is in both.
    x = x_of(table, "config.optimizer")
    drag(table, canvas, (x, TOP - 4), (x, TOP + 70))
    said(table, sum(one["name"] in within and one["config.optimizer"] == "SGD" for one in SWEEP))
    expect(chip).to_have_count(2)
    canvas.click(position={"x": x, "y": 140})
    expect(chip).to_have_count(1)
    chip.click()
    said(table, 120)
    expect(chip).to_have_count(0)


def test_a_rectangle_in_the_scatter_leaves_its_runs_in_the_table(table: TablePage) -> None:
    canvas = chosen(table, "scatter")
    table.page.get_by_label("x", exact=True).select_option("config.lr")
    table.page.get_by_label("y", exact=True).select_option("loss.last")
    box = canvas.bounding_box()
    assert box is not None
    left, right, top, bottom = 62, box["width"] - 24, 14, 260 - 36
    drag(table, canvas, (left + 100, top + 20), (left + 300, bottom - 40))
    rates, losses = ([one[name] for one in SWEEP] for name in ("config.lr", "loss.last"))

    def rate(x: float) -> float:
        share = (x - left) / (right - left)
        return float(min(rates) * (max(rates) / min(rates)) ** share)

    def loss(y: float) -> float:
        return float(min(losses) + (bottom - y) / (bottom - top) * (max(losses) - min(losses)))

    within = [
        one
        for one in SWEEP
        if rate(left + 100) <= one["config.lr"] <= rate(left + 300)
        and loss(bottom - 40) <= one["loss.last"] <= loss(top + 20)
    ]
    assert 5 < len(within) < 115
    said(table, len(within))
    table.filter.fill("SGD")
    said(table, sum(one["config.optimizer"] == "SGD" for one in within))


def test_a_run_without_a_value_is_in_no_range(table: TablePage) -> None:
    chosen(table, "parallel")
    axis(table, "eval.accuracy").press("ArrowUp")
    axis(table, "eval.accuracy").press("ArrowDown")  # to the lower end again
    said(table, sum(not math.isnan(one["eval.accuracy"]) for one in SWEEP))


def test_ranges_are_set_by_the_keyboard_alone(table: TablePage) -> None:
    chosen(table, "parallel")
    name = axis(table, "config.lr")
    name.focus()
    for _ in range(4):
        table.page.keyboard.press("ArrowUp")
    for _ in range(6):
        table.page.keyboard.press("Shift+ArrowDown")
    low, high = (rate_at(BOTTOM - share * (BOTTOM - TOP)) for share in (0.2, 0.7))
    said(table, sum(low <= one["config.lr"] <= high for one in SWEEP))
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-label", re.compile(r"^config\.lr: 0\.000\d+ to 0\.0\d+$"))
    table.page.keyboard.press("Delete")
    said(table, 120)


def test_a_point_is_named_and_opens_its_run(table: TablePage) -> None:
    canvas = chosen(table, "scatter")
    table.page.get_by_label("y", exact=True).select_option("loss.last")
    box = canvas.bounding_box()
    assert box is not None
    rates, losses = ([one[name] for one in SWEEP] for name in ("config.lr", "loss.last"))
    best = min(SWEEP, key=lambda one: one["loss.last"])
    share = math.log(best["config.lr"] / min(rates)) / math.log(max(rates) / min(rates))
    assert best["loss.last"] == min(losses)
    place = {"x": 62 + share * (box["width"] - 86), "y": 260.0 - 36}
    canvas.hover(position=place)  # type: ignore[arg-type]
    tip = table.page.locator(".nbp-runs-drawn .nbp-runs-tip")
    expect(tip).to_contain_text(best["name"])
    expect(tip).to_contain_text("loss.last: ")
    canvas.click(position=place)  # type: ignore[arg-type]
    assert table.saved()["chosen"] == best["run"]


@pytest.mark.slow
def test_a_range_among_a_thousand_runs_paints_each_of_them_once(plain: TablePage) -> None:
    table = plain.show(LineageTable.of(row(k) for k in range(1000)))
    chosen(table, "parallel")
    n_strokes = table.page.evaluate(
        """() => new Promise((done) => {
          const pen = CanvasRenderingContext2D.prototype;
          const stroke = pen.stroke;
          let n = 0;
          pen.stroke = function (...given) {
            n += this.canvas.matches(".nbp-runs-canvas");
            return stroke.apply(this, given);
          };
          const key = new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true });
          document.querySelector(".nbp-runs-axes button").dispatchEvent(key);
          requestAnimationFrame(() => setTimeout(() => {
            pen.stroke = stroke;
            done(n);
          }));
        })"""
    )
    assert n_strokes == 1000 + len(COLUMNS)
    table.picture("runs_parallel_1000")


# ---------------------------------------------------------------- groups


def group(text: str, n: int, level: float) -> dict[str, Any]:
    steps = [10.0 * k for k in range(100)]
    mean = [level * math.exp(-step / 400) + 0.1 for step in steps]
    ends = {"low": [0.8 * one for one in mean], "high": [1.3 * one for one in mean]}
    spread = {"last": mean[-1], "std": 0.02 if n > 1 else None}
    return {"text": text, "n": n, "x": steps, "mean": mean, **ends, **spread}


def test_runs_are_grouped_by_a_setting_with_mean_band_and_number(table: TablePage) -> None:
    table.page.get_by_role("button", name="groups", exact=True).click()
    table.page.get_by_label("grouped by").select_option("config.optimizer")
    asked = table.wait_sent("groups", 2)
    assert asked["names"] == ["config.optimizer"]
    table.page.get_by_label("grouped by").select_option("config.depth")
    asked = table.wait_sent("groups", 3)
    assert asked["names"] == ["config.depth"]
    assert sorted(asked["runs"]) == list(range(120))
    groups = [group(str(depth), 40, 2.0 / depth) for depth in (2, 4, 8)]
    told = {"by": "config.depth", "scalar": "loss", "n_read": 120, "n_runs": 120, "problem": ""}
    table.say("groups", view=asked["view"], groups=groups, **told)
    canvas = table.page.locator(".nbp-runs-canvas:visible")
    drawn = json.loads(canvas.get_attribute("data-groups") or "")
    assert [(text, n) for text, n, _ in drawn] == [("2", 40), ("4", 40), ("8", 40)]
    entries = table.page.get_by_role("group", name="Groups").get_by_role("button")
    expect(entries.nth(1)).to_contain_text("4 N 40, last 0.142 ± 0.02")
    table.picture("runs_groups")
    entries.nth(1).click()
    said(table, sum(one["config.depth"] == 4 for one in SWEEP))


# ---------------------------------------------------------------- marks


def test_a_star_and_the_fields_mark_a_run_at_its_row(table: TablePage) -> None:
    star = table.page.get_by_role("button", name="Star run 3", exact=True)
    expect(star).to_have_attribute("aria-pressed", "true")
    star.click()
    asked = table.wait_sent("mark")
    assert (asked["runs"], asked["names"], asked["text"]) == ([3], ["tags"], "")
    assert "saved" not in table.page.evaluate("Object.keys(window)") or not table.saved()["chosen"]
    table.row("run 1").focus()
    table.page.keyboard.press("e")
    dialog = table.page.get_by_role("dialog", name="Marks of run 1")
    expect(dialog.get_by_label("Name")).to_have_value("run 1")
    expect(dialog.get_by_label("Name")).to_be_focused()
    dialog.get_by_label("Note").fill("diverges\nwithout warmup")
    dialog.get_by_label("Tags").fill("bad")
    dialog.get_by_label("Tags").press("Enter")
    table.wait_sent("mark", 3)
    sent = {one["names"][0]: one["text"] for one in table.sent("mark")[1:]}
    assert sent == {"tags": "bad", "note": "diverges\nwithout warmup"}
    view = table.sent("mark")[-1]["view"]
    table.say("marked", view=view, at=1, problem="the note is too long")
    expect(dialog.get_by_role("status")).to_have_text("the note is too long")
    dialog.get_by_role("button", name="Save").click()
    for _ in range(2):
        table.say("marked", view=view, at=1, problem="")
    expect(dialog).to_have_count(0)
    expect(table.row("run 1")).to_be_focused()


def test_a_key_stars_the_row_and_rows_of_another_kind_have_no_marks(plain: TablePage) -> None:
    table = plain.show(TABLE)
    table.row("run 1").focus()
    table.page.keyboard.press("s")
    assert table.wait_sent("mark")["text"] == "star"
    table.say_rows([1], [], marks=[{"at": 1, "name": "deep", "tags": ["star"], "note": "n"}])
    expect(table.page.locator('.nbp-runs-star[aria-pressed="true"]')).to_have_count(2)
    table.page.evaluate("cleanUp(); fake.set('can_mark', false)")
    table.page.evaluate("document.getElementById('cell').replaceChildren()")
    table.page.evaluate("view.default.render({ model: fake, el: document.getElementById('cell') })")
    expect(table.rows.first).to_be_visible()
    expect(table.page.locator(".nbp-runs-star")).to_have_count(0)


def test_a_phone_shows_some_letters_of_each_name(plain: TablePage) -> None:
    table = plain.show(TABLE, width=320)
    table.say_line(2, n_alerts=12, alerts=["step 9: large steps"])
    table.wait_sent("lines")
    width = table.page.locator(".nbp-runs-name").nth(2).evaluate("(node) => node.clientWidth")
    assert width > 20


# ---------------------------------------------------------------- kept, and CSV


@pytest.mark.slow
def test_columns_order_filter_and_picture_are_there_again(plain: TablePage) -> None:
    table = plain.show(TABLE)
    table.head("config.lr").click()
    table.filter.fill("adam")
    chosen(table, "scatter")
    table.page.get_by_role("button", name="columns").click()
    table.page.get_by_role("button", name="None").click()
    for name in ("config.lr", "config.optimizer", "loss.last"):
        table.page.get_by_role("checkbox", name=name, exact=True).check()
    table.page.keyboard.press("Escape")
    order, heads = table.order(), table.heads()
    assert {*heads} == {"run", "config.lr", "config.optimizer", "loss.last"}
    kept = table.page.evaluate("fake.get('kept')")
    again = plain.show(TABLE, kept=kept)
    expect(again.rows).to_have_count(len(order))
    assert again.order() == order
    assert again.heads() == heads
    expect(again.filter).to_have_value("adam")
    expect(again.page.locator(".nbp-runs-canvas:visible")).to_have_count(1)
    expect(again.page.locator("th[aria-sort=ascending]")).to_contain_text("lr")
    assert plain.errors == []


def test_what_is_kept_of_another_table_does_no_harm(plain: TablePage) -> None:
    kept = {"columns": ["gone", "config.lr"], "sorted": {"name": "gone", "down": True}}
    table = plain.show(TABLE, kept={**kept, "picture": {"kind": "scatter", "x": "gone"}})
    assert table.heads() == ["run", "config.lr"]
    expect(table.page.locator(".nbp-runs-picture")).to_contain_text("Choose two columns")
    assert plain.errors == []


def test_the_rows_and_columns_in_sight_are_saved_as_csv(table: TablePage, tmp_path: Path) -> None:
    table.filter.fill("lion")
    table.head("loss.last").click()
    with table.page.expect_download() as saving:
        table.page.get_by_role("button", name="CSV").click()
    saving.value.save_as(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    lions = sorted(
        (one for one in SWEEP if one["config.optimizer"] == "Lion"),
        key=lambda one: one["loss.last"],
    )
    assert [one["name"] for one in lines] == [one["name"] for one in lions]
    assert [float(one["config.lr"]) for one in lines] == [one["config.lr"] for one in lions]
    assert {*lines[0]} == {"name", "run", *table.heads()} - {"run"} | {"run"}


# ---------------------------------------------------------------- looked at


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [700, 1100, 1600])
@pytest.mark.parametrize("kind", ["parallel", "scatter"])
def test_the_pictures_fit_into_a_cell_and_axe_finds_nothing_serious(
    plain: TablePage, kind: str, width: int, theme: str
) -> None:
    table = plain.show(TABLE, theme, width)
    canvas = chosen(table, kind)
    drag(table, canvas, (120, 80), (260, 160))
    assert table.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table.picture(f"runs_{kind}_{theme}_{width}")
    assert findings(table.page, ".nbp-runs-table") == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark", "dark-high-contrast"])
def test_axe_finds_nothing_serious_in_the_table(plain: TablePage, theme: str) -> None:
    table = plain.show(TABLE, theme)
    for at in table.wait_sent("lines")["runs"]:
        table.say_line(at, n_alerts=1, alerts=["step 9: large steps"])
    assert findings(table.page, ".nbp-runs-table") == []
    table.row("run 1").focus()
    table.page.keyboard.press("e")
    assert findings(table.page, ".nbp-runs-table") == []
    table.picture(f"runs_marks_{theme}")
    table.page.keyboard.press("Escape")
    table.page.get_by_role("button", name="columns").click()
    assert findings(table.page, ".nbp-runs-table") == []


# ---------------------------------------------------------------- in JupyterLab

SWEEPING = """
import torch
import notebook_probe as nbp

for lr in (0.1, 0.01):
    for seed in range(2):
        torch.manual_seed(seed)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr)
        name, config = f"lr {lr} seed {seed}", {"lr": lr, "seed": seed}
        place = f"sweep/{lr}-{seed}.zarr"
        with nbp.watch(model, optimizer, store=place, name=name, config=config) as run:
            for step in range(20):
                optimizer.zero_grad()
                loss = model(torch.ones(8, 4)).square().mean()
                loss.backward()
                run.log(loss=loss)
                optimizer.step()
cat = nbp.catalogue("sweep/index.sqlite", root="sweep")
"""
OPEN = "cat.runs(lambda row: 'sweep' in str(row['run']).split('/')).explore()"


def test_in_a_notebook_runs_are_grouped_brushed_marked_and_found_again(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([SWEEPING, OPEN, OPEN])
    notebook.run(0, 1)
    cell = notebook.locate(1)
    rows = cell.locator(".nbp-runs-table tbody tr[data-at]")
    expect(rows).to_have_count(4)
    cell.get_by_role("button", name="groups", exact=True).click()
    entries = cell.get_by_role("group", name="Groups").get_by_role("button")
    expect(cell.get_by_label("grouped by")).to_have_value("config.lr")
    expect(entries).to_have_count(2)
    expect(entries.nth(0)).to_contain_text("0.01 N 2, last ")
    notebook.screenshot(SCREENSHOTS / "runs-groups-lab.png")
    entries.nth(1).click()
    expect(rows).to_have_count(2)
    cell.get_by_role("button", name="Star lr 0.1 seed 0").click()
    expect(cell.locator('.nbp-runs-star[aria-pressed="true"]')).to_have_count(1)
    rows.filter(has_text="lr 0.1 seed 0").focus()
    notebook.page.keyboard.press("e")
    dialog = cell.get_by_role("dialog")
    dialog.get_by_label("Name").fill("best")
    dialog.get_by_label("Note").fill("for the paper")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(rows.locator(".nbp-runs-name").filter(has_text="best")).to_have_count(1)
    marks = read(lab.notebooks / "sweep" / "0.1-0.zarr")
    assert marks == {"tags": ["star"], "note": "for the paper", "archived": False, "name": "best"}

    notebook.run(2)
    later = notebook.locate(2)
    expect(later.locator(".nbp-runs-canvas:visible")).to_have_count(1)
    expect(later.get_by_role("button", name="groups", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(later.get_by_role("button", name="Star best")).to_have_attribute("aria-pressed", "true")
