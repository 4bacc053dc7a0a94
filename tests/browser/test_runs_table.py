"""The table of runs: sorted, filtered, columns picked, a run opened by a click, others by ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from notebook_probe.lineage.table import LineageTable
from tests.browser.explorer_page import PICTURES
from tests.browser.lab import PATIENCE_S, OpenNotebook
from tests.browser.table_page import TablePage

HOSTILE = "<img src=x onerror=alert(1)>"
TOLD: list[tuple[str, int, dict[str, Any]]] = [
    ("wide", 1200, {"config.lr": 0.1, "eval.accuracy": 0.91, "config.optimizer": "SGD"}),
    ("deep", 80, {"config.lr": 0.003, "eval.accuracy": 0.97, "config.optimizer": "AdamW"}),
    ("lost", 700, {"config.lr": 3.0, "eval.accuracy": math.nan, "config.optimizer": "SGD"}),
    (HOSTILE, 5, {"config.lr": 0.03, "config.optimizer": "<b>", "eval.accuracy": math.inf}),
    ("none", 5, {"config.lr": 0.03, "config.optimizer": 4, "config.seed": 1}),
]
RUNS = [
    {"run": f"runs/{name}.zarr", "name": name, "state": "finished", "steps": steps, **more}
    for name, steps, more in TOLD
]
TABLE = LineageTable.of(RUNS)


def many(n: int) -> LineageTable:
    return LineageTable.of(
        {
            "run": f"r/{k}.zarr",
            "name": f"run {k}",
            "state": "killed" if k % 9 else "finished",
            **{f"config.model.setting_{j}": (k * 7919 + j) % 97 / 7 for j in range(14)},
        }
        for k in range(n)
    )


@pytest.fixture(scope="module")
def plain(browser: Browser) -> Iterator[TablePage]:
    """A page for all tests of the file."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield TablePage(page)
    page.close()


@pytest.fixture
def table(plain: TablePage) -> Iterator[TablePage]:
    shown = plain.show(TABLE)
    expect(shown.rows).to_have_count(len(TABLE))
    yield shown
    assert shown.errors == []


@pytest.mark.parametrize("column", ["eval.accuracy", "config.optimizer", "steps"])
def test_a_head_sorts_up_then_down_then_back(table: TablePage, column: str) -> None:
    came = table.order()
    table.head(column).click()
    assert table.order() == TABLE.sort(column)["name"]
    head = table.page.locator("th[aria-sort=ascending]")
    expect(head).to_have_text(f"{column.replace('.', '')} ▲")
    table.head(column).click()
    assert table.order() == TABLE.sort(column, descending=True)["name"]
    expect(table.page.locator("th[aria-sort=descending]")).to_have_count(1)
    table.head(column).press("Enter")
    assert table.order() == came
    expect(table.head(column)).to_be_focused()


def test_a_moment_is_shown_where_the_reader_is_and_whole_in_its_title(plain: TablePage) -> None:
    at = "2026-11-29T15:16:22+00:00"
    rows = [
        {**RUNS[0], "created": at},
        {**RUNS[1], "created": "soon"},
        {**RUNS[2], "created": f"{at} or so"},
    ]
    panel = plain.show(LineageTable.of(rows))
    expect(panel.rows).to_have_count(3)
    local = panel.page.evaluate(
        "(at) => { const t = new Date(at); return [t.getDate(),"
        " t.getHours(), t.getMinutes()].map((one) => String(one).padStart(2, '0')); }",
        at,
    )
    cell = panel.page.locator(f'td[title="{at}"]')
    expect(cell).to_have_text(f"{local[0]} Nov, {local[1]}:{local[2]}")
    for text in ("soon", f"{at} or so"):
        expect(panel.page.locator("td", has_text=text)).to_have_text(text)


def test_runs_are_sorted_by_name_too(table: TablePage) -> None:
    table.head("run").click()
    assert table.order() == sorted(TABLE["name"])


def test_a_row_opens_its_run_by_mouse_and_keyboard(table: TablePage) -> None:
    table.row("wide").click()
    assert table.saved() == {"chosen": "runs/wide.zarr", "others": []}
    expect(table.row("wide")).to_have_attribute("aria-selected", "true")
    table.page.keyboard.press("ArrowDown")
    expect(table.row("deep")).to_be_focused()
    table.page.keyboard.press("Enter")
    assert table.saved()["chosen"] == "runs/deep.zarr"
    table.head("steps").click()
    expect(table.row("deep")).to_have_attribute("aria-selected", "true")
    expect(table.foot).to_have_text("runs/deep.zarr")
    table.page.evaluate("fake.set('said', 'no record at <b>runs</b>')")
    expect(table.foot).to_have_text("no record at <b>runs</b>")


def test_ticks_draw_runs_beside_the_open_one(table: TablePage) -> None:
    table.tick("deep").click()
    assert table.saved() == {"chosen": "runs/deep.zarr", "others": []}, "none was open"
    table.tick("wide").click()
    table.row("lost").focus()
    table.page.keyboard.press("Space")
    assert table.saved()["others"] == ["runs/wide.zarr", "runs/lost.zarr"]
    expect(table.foot).to_have_text("runs/deep.zarr, and 2 others")
    expect(table.tick("lost")).to_be_checked()
    table.tick("wide").click()
    assert table.saved() == {"chosen": "runs/deep.zarr", "others": ["runs/lost.zarr"]}
    table.tick("deep").click()
    assert table.saved() == {"chosen": "runs/lost.zarr", "others": []}, "the next one is opened"
    table.page.evaluate("fake.set('others', ['runs/none.zarr'])")  # ticked in the Explorer
    expect(table.tick("none")).to_be_checked()
    table.row("none").click()
    assert table.saved() == {"chosen": "runs/none.zarr", "others": []}


def test_no_more_are_drawn_than_can_be_told_apart(plain: TablePage) -> None:
    table = plain.show(many(8))
    for k in range(6):
        table.tick(f"run {k}").click()
    assert len(table.saved()["others"]) == 4
    expect(table.foot).to_have_text("At most 4 runs with the open one: remove one first")
    expect(table.tick("run 5")).not_to_be_checked()


def test_words_choose_rows_at_once(table: TablePage) -> None:
    table.filter.fill("sgd")
    assert table.order() == ["wide", "lost"]
    expect(table.said).to_have_text("2 of 5 runs")
    assert table.sent("filter") == [], "the kernel is not asked"
    table.head("steps").click()
    assert table.order() == ["lost", "wide"]
    table.filter.press("Escape")
    assert len(table.order()) == 5
    table.filter.fill("nothing-has-this")
    expect(table.said).to_have_text("0 of 5 runs")
    assert table.order() == []


def test_a_condition_is_read_by_the_kernel(table: TablePage) -> None:
    table.filter.fill("config.lr < 0.05")
    asked = table.wait_sent("filter")
    assert asked["text"] == "config.lr < 0.05"
    assert len(table.order()) == 5, "until it is known"
    table.answer_filter(rows=[1, 3, 4])
    assert table.order() == ["deep", HOSTILE, "none"]
    table.say("filtered", view="another", text="config.lr < 0.05", kind="condition", rows=[0])
    assert len(table.order()) == 3, "what another view has asked is not its own"
    table.filter.fill("config.lr <")
    table.wait_sent("filter", 2)
    table.answer_filter(kind="problem", problem="<i>a number is missing</i> after <")
    expect(table.said).to_have_text("<i>a number is missing</i> after <")
    expect(table.filter).to_have_attribute("aria-invalid", "true")
    assert len(table.order()) == 3, "the rows stay"
    table.filter.fill("adam w")
    table.wait_sent("filter", 3)
    table.answer_filter(kind="words")
    assert table.order() == ["deep"]
    expect(table.filter).not_to_have_attribute("aria-invalid", "true")


def test_columns_are_picked_from_a_list_that_is_searched(table: TablePage) -> None:
    button = table.page.get_by_role("button", name="columns")
    assert "config.seed" not in table.heads(), "the same in all that tell it"
    button.click()
    dialog = table.page.get_by_role("dialog", name="Columns")
    find = dialog.get_by_role("searchbox")
    expect(find).to_be_focused()
    find.fill("seed")
    table.page.keyboard.press("ArrowDown")
    table.page.keyboard.press("Space")
    assert table.wait_sent("columns")["names"] == ["config.seed"]
    keys = [None, None, None, None, 1]
    texts = ["", "", "", "", "1"]
    column = {"name": "config.seed", "numeric": True, "keys": keys, "texts": texts}
    table.say("columns", columns=[column])
    assert table.heads()[-1] == "config.seed"
    find.fill("accur")
    dialog.get_by_role("checkbox", name="eval.accuracy").click()
    assert "eval.accuracy" not in table.heads()
    find.fill("nobody")
    expect(dialog.get_by_text("Nothing is called nobody")).to_be_visible()
    table.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    table.head("config.seed").click()
    assert table.order()[0] == "none"


def test_lines_are_asked_for_rows_in_sight_alone(plain: TablePage) -> None:
    table = plain.show(many(500))
    first = table.wait_sent("lines")["runs"]
    assert first[0] == 0
    assert len(first) < 40
    for at in first:
        table.say_line(at)
    name = "loss: 2 to 0.267"
    expect(table.page.get_by_role("img", name=name).first).to_be_visible()
    table.page.locator(".nbp-runs-rows").evaluate("(one) => { one.scrollTop = 28 * 300; }")
    later = table.wait_sent("lines", 2)["runs"]
    assert min(later) > 250
    assert not {*later} & {*first}


def test_a_record_that_cannot_be_read_says_so(table: TablePage) -> None:
    table.say_line(0, problem="cannot be read: no record at <b>", line=[])
    cell = table.row("wide").get_by_text("cannot be read")
    expect(cell).to_have_attribute("title", "cannot be read: no record at <b>")
    table.say_line(1, line=[], last=None)
    expect(table.row("deep").get_by_title("no loss was logged")).to_be_visible()
    table.say_line(2, line=[None, None], last=None)
    expect(table.row("lost").get_by_role("img", name="loss: NaN to NaN")).to_be_visible()


def test_alerts_are_counted_on_a_badge_and_told_in_a_tip(table: TablePage) -> None:
    alerts = ["step 412: dead units at <b>relu</b>", "step 9: large steps"]
    table.say_line(0, alerts=alerts, n_alerts=3, severe=True)
    badge = table.row("wide").locator(".nbp-runs-badge")
    expect(badge).to_have_text("3")
    tip = table.page.get_by_role("tooltip")
    expect(tip).to_have_count(0)
    badge.hover()
    words = ["3 alerts", *alerts, "and 1 before"]
    expect(tip).to_have_text("\n".join(words), use_inner_text=True)
    table.page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    table.row("deep").focus()
    table.page.keyboard.press("ArrowUp")
    expect(tip).to_be_visible()
    described = table.row("wide").get_attribute("aria-describedby")
    assert table.page.locator(f"#{described}").count() == 1
    table.page.keyboard.press("Escape")
    expect(tip).to_have_count(0)


def test_runs_that_grow_are_looked_at_once_a_second_while_they_are_seen(
    browser: Browser,
) -> None:
    page = browser.new_page()
    page.clock.install()
    table = TablePage(page).show(TABLE)
    table.wait_sent("hello")
    assert table.sent("look") == []
    table.looked(1)
    table.wait_sent("look")
    steps = {"name": "steps", "numeric": True, "keys": [1300], "texts": ["1 300"]}
    table.row("wide").focus()
    table.say_rows([0], [steps])
    expect(table.row("wide").get_by_text("1 300")).to_be_visible()
    expect(table.row("wide")).to_be_focused()
    assert len(table.sent("look")) == 1, "one at a time"
    table.page.locator("#cell").evaluate("(cell) => { cell.style.display = 'none'; }")
    table.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    table.looked(1)
    page.clock.fast_forward(5000)
    assert len(table.sent("look")) == 1, "nobody sees it"
    table.page.locator("#cell").evaluate("(cell) => { cell.style.display = ''; }")
    table.wait_sent("look", 2)
    table.looked(0)
    page.clock.fast_forward(5000)
    assert len(table.sent("look")) == 2, "none grows any more"
    page.close()


def test_keys_go_through_the_rows(plain: TablePage) -> None:
    table = plain.show(many(3000))
    table.rows.first.focus()
    for key, name in [
        ("ArrowDown", "run 1"),
        ("ArrowDown", "run 2"),
        ("End", "run 2999"),
        ("ArrowUp", "run 2998"),
        ("Home", "run 0"),
    ]:
        table.page.keyboard.press(key)
        expect(table.row(name)).to_be_focused()
        expect(table.row(name).locator(".nbp-runs-name")).to_be_in_viewport(ratio=1)
    assert table.page.locator("tbody [tabindex='0']").count() == 1
    assert table.page.get_by_role("grid").get_attribute("aria-rowcount") == "3001"
    assert table.row("run 0").get_attribute("aria-rowindex") == "2"


def test_names_are_text_and_nothing_is_left_behind(table: TablePage) -> None:
    assert table.page.locator(".nbp-runs-table img, .nbp-runs-table tbody b").count() == 0
    assert HOSTILE in table.order()
    table.page.evaluate("cleanUp()")
    assert table.page.evaluate("Object.keys(heard).length") == 0


def test_of_ten_thousand_rows_a_few_are_made_and_all_are_sorted(plain: TablePage) -> None:
    whole = many(10_000)
    table = plain.show(whole)
    assert table.rows.count() < 60
    assert {round(one.bounding_box()["height"]) for one in table.rows.all()[:5]} == {28}  # type: ignore[index]
    column = "config.model.setting_3"
    table.head(column).click()
    assert table.order()[:10] == whole.sort(column)["name"][:10]
    table.filter.fill("9999")
    expect(table.said).to_have_text("1 of 10\u202f000 runs")
    assert table.order() == ["run 9999"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [640, 880, 1280])
def test_many_runs_fit_into_a_cell(plain: TablePage, theme: str, width: int) -> None:
    table = plain.show(many(100), theme, width)
    for at in table.wait_sent("lines")["runs"]:
        table.say_line(at, n_alerts=at % 3, alerts=["step 9: large steps"] * (at % 3))
    table.head("config.model.setting_1").click()
    table.rows.nth(2).click()
    box = table.root.bounding_box()
    assert box is not None
    assert box["width"] <= width
    assert box["height"] < 460
    assert table.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table.picture(f"runs_table_{theme}_{width}")


RECORD = """
import torch
import notebook_probe as nbp

def train(lr, n=20):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    place = f"table/lr-{lr}.zarr"
    with nbp.watch(model, optimizer, store=place, name=f"lr {lr}", config={"lr": lr}) as run:
        for step in range(n):
            optimizer.zero_grad()
            loss = model(torch.ones(8, 4)).square().mean()
            loss.backward()
            run.log(loss=loss)
            optimizer.step()

for lr in (0.1, 0.3, 0.01):
    train(lr)
"""
SHOW = "nbp.open_runs('table/*.zarr').lineage().explore()"


def test_in_a_notebook_a_condition_chooses_and_runs_open_beside_each_other(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook([RECORD, SHOW])
    notebook.run(0, 1)
    cell = notebook.locate(1)
    rows = cell.locator(".nbp-runs-table tbody tr[data-at]")
    expect(rows).to_have_count(3)
    expect(cell.locator("canvas[aria-label^='loss:']")).to_have_count(3)
    cell.get_by_role("searchbox", name="Filter").fill("params.lr > 0.05")
    expect(rows).to_have_count(2)
    cell.locator("thead button[title='sort by config.lr']").dblclick()
    expect(rows.first.locator(".nbp-runs-name")).to_have_text("lr 0.3")
    rows.first.click()
    panel = cell.locator(".nbp-panel")
    expect(panel).to_have_count(1)
    expect(panel.get_by_text("lr 0.3").first).to_be_visible()
    rows.nth(1).get_by_role("checkbox").click()
    expect(panel.locator(".nbp-beside").first).to_have_text("+1")
    notebook.screenshot(PICTURES / "runs_table.png")
    rows.nth(1).click()
    expect(cell.locator(".nbp-panel").get_by_text("lr 0.1").first).to_be_visible()
    expect(cell.locator(".nbp-panel")).to_have_count(1)
