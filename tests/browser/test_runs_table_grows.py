"""Runs that begin in other processes while their table is open, and what stays as they come."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import notebook_probe as nbp
from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.explorer.runs_table.table_source import TableSource
from notebook_probe.lineage.table import LineageTable
from tests.browser.lab import PATIENCE_S
from tests.browser.table_page import TablePage

TRAINS = """
import sys
import torch
import notebook_probe as nbp

run = None
for line in sys.stdin:
    what, *given = line.split()
    if what == "begin":
        name, lr = given
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), float(lr))
        config = {"lr": float(lr)}
        run = nbp.watch(model, optimizer, store=f"runs/{name}.zarr", name=name, config=config)
    elif what == "accuracy":
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 2)).mean().backward()
            optimizer.step()
            run.log(loss=0.5)
            run.log(accuracy=float(given[0]), phase="eval")
        run.flush()
    elif what == "close":
        run.close()
    print("done", flush=True)
"""


class Trains:
    """Another process, which trains as it is told."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", TRAINS], cwd=folder, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def told(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        while self._process.stdout.readline() not in ("done\n", ""):
            pass
        assert self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def table(browser: Browser) -> Iterator[TablePage]:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    shown = TablePage(page)
    yield shown
    assert shown.errors == []
    page.close()


@pytest.fixture
def trains(tmp_path: Path) -> Iterator[Trains]:
    process = Trains(tmp_path)
    yield process
    process.end()


def until(turn: Callable[[], object], is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        turn()


def test_runs_of_other_processes_come_into_an_open_table_and_tell_what_becomes_of_them(
    table: TablePage, trains: Trains, tmp_path: Path
) -> None:
    told: SimpleQueue[dict[str, Any]] = SimpleQueue()
    (tmp_path / "runs").mkdir()
    with nbp.catalogue(tmp_path / "index.sqlite", root=tmp_path / "runs") as cat:
        runs = cat.runs(lambda row: str(row["run"]).startswith(str(tmp_path)))
        source = TableSource(lambda text: lambda row: False, runs._read_row, runs.asked_again)
        answers = Answers(OpenRows(runs), source, lambda message: told.put(dict(message)))
        served = table.show(runs).served_by(answers, told)

        def cell(name: str, text: str) -> Callable[[], bool]:
            cells = table.row(name).get_by_role("gridcell", name=text, exact=True)
            return lambda: cells.count() > 0

        def turn() -> None:
            next(served)
            table.page.evaluate("new Promise((done) => setTimeout(done, 20))")

        trains.told("begin first 0.1")
        trains.told("accuracy 0.5")
        until(turn, cell("first", "running"))
        until(turn, lambda: table.page.get_by_role("img", name="loss: 0.5 to 0.5").count() == 1)
        trains.told("close")
        until(turn, cell("first", "finished"))
        trains.told("begin second 0.3")
        trains.told("accuracy 0.625")
        until(turn, cell("second", "0.625"))
        assert cell("second", "0.3")(), "its rate, in which the two differ"
        trains.told("accuracy 0.75")
        until(turn, cell("second", "0.75"))
        assert table.order() == ["second", "first"]
        expect(table.said).to_have_text("2 runs")
        trains.kill()
        until(turn, cell("second", "killed"))
        table.picture("runs_table_grown")
        answers.close()


def many(n: int) -> LineageTable:
    return LineageTable.of(
        {"run": f"r/{k}.zarr", "name": f"run {k}", "state": "finished", "steps": k}
        for k in range(n)
    )


def steps(*values: int) -> list[dict[str, Any]]:
    texts = [str(one) for one in values]
    return [{"name": "steps", "numeric": True, "keys": [*values], "texts": texts}]


def test_what_is_sorted_filtered_ticked_focused_and_scrolled_to_stays_so_as_runs_come(
    table: TablePage,
) -> None:
    table.show(many(300))
    table.head("steps").click()
    table.head("steps").click()
    table.filter.fill("run")
    table.tick("run 299").click()
    scroller = table.page.locator(".nbp-runs-rows")
    scroller.evaluate("(one) => { one.scrollTop = 28 * 100 + 9; }")
    row = table.row("run 190")
    row.focus()
    before = row.bounding_box()
    table.say_rows([300, 301, 302], steps(1000, 189, 2), labels=["run x", "run y", "no"])
    expect(table.said).to_have_text("302 of 303 runs")
    assert row.bounding_box() == before
    expect(row).to_be_focused()
    expect(table.row("run y")).to_be_visible()
    assert table.page.get_by_role("grid").get_attribute("aria-rowcount") == "303"
    scroller.evaluate("(one) => { one.scrollTop = 0; }")
    expect(table.row("run x")).to_be_visible()
    assert table.order()[:3] == ["run x", "run 299", "run 298"]
    expect(table.tick("run 299")).to_be_checked()
    assert table.saved() == {"chosen": "r/299.zarr", "others": []}
    table.page.wait_for_function(
        "sent.some((one) => one.type === 'lines' && one.runs.includes(300))"
    )
    table.row("run x").click()
    assert table.saved()["chosen"] == "new/0.zarr"


def test_a_condition_is_asked_again_as_runs_come_and_the_rows_stay_where_they_are(
    table: TablePage,
) -> None:
    table.show(many(300))
    table.filter.fill("steps > 100")
    table.answer_filter(rows=[*range(101, 300)])
    scroller = table.page.locator(".nbp-runs-rows")
    scroller.evaluate("(one) => { one.scrollTop = 28 * 50; }")
    expect(table.row("run 151")).to_be_visible()
    before = table.row("run 151").bounding_box()
    table.say_rows([300], steps(500))
    assert table.wait_sent("filter", 2)["text"] == "steps > 100"
    table.answer_filter(rows=[*range(101, 301)])
    expect(table.said).to_have_text("200 of 301 runs")
    assert table.row("run 151").bounding_box() == before


def test_two_views_of_one_table_each_have_a_run_once_and_know_no_place_before_it_is_told(
    table: TablePage,
) -> None:
    table.show(many(2))
    table.say_rows([3], steps(9))
    assert table.order() == ["run 0", "run 1"], "the one before it is still to be told"
    table.say_rows([2, 3], steps(8, 9))
    table.say_rows([2, 3], steps(8, 10))
    assert table.order() == ["new 1", "new 0", "run 0", "run 1"]
    assert len(table.page.evaluate("fake.get('table').runs")) == 2, "what was sent is as it was"


def test_columns_in_which_runs_differ_come_with_them_unless_others_were_picked(
    table: TablePage,
) -> None:
    table.show(many(2))
    more = ["state", "steps", "config.lr"]
    table.say_rows([2], steps(8), names=["config.lr"], shown=more)
    assert table.wait_sent("columns")["names"] == ["config.lr"]
    rates = {"name": "config.lr", "numeric": True, "keys": [None, None, 1], "texts": ["", "", "1"]}
    table.say("columns", columns=[rates])
    assert table.heads() == ["run", *more]
    table.page.get_by_role("button", name="columns").click()
    table.page.get_by_role("checkbox", name="steps").click()
    table.say_rows([3], steps(8), shown=[*more, "other"])
    assert table.heads() == ["run", "state", "config.lr"]
    table.page.get_by_role("button", name="Those that differ").click()
    assert table.sent("columns")[-1]["names"] == ["other"]


def test_why_new_runs_cannot_be_looked_for_is_said_until_they_can(table: TablePage) -> None:
    table.show(many(2))
    table.looked(2, "new runs cannot be looked for: the disk has gone")
    expect(table.foot).to_have_text("new runs cannot be looked for: the disk has gone")
    table.looked(2)
    expect(table.foot).to_contain_text("a click on a head sorts")
