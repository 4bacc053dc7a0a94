"""The table of runs on a bare page, with a fake kernel that the test speaks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import Any

from playwright.sync_api import Locator, Page, expect

from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.runs_table import css, esm
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import view_of
from tests.browser.panel_page import SCREENSHOTS, theme_variables

RENDER = """
async ([source, styles, table, kept]) => {
  const sheet = document.createElement("style");
  sheet.textContent = styles;
  document.head.append(sheet);
  const state = { table, chosen: "", others: [], said: "", kept, can_mark: true };
  const heard = {};
  window.sent = [];
  window.fake = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; heard[`change:${name}`]?.(); },
    save_changes: () => { window.saved = { chosen: state.chosen, others: state.others }; },
    on: (name, run) => { heard[name] = run; },
    off: (name) => { delete heard[name]; },
    send: (message) => sent.push(message),
  };
  window.heard = heard;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  window.view = await import(url);
  window.cleanUp = view.default.render({ model: fake, el: document.getElementById("cell") });
}
"""


class TablePage:
    """One view of the table. ``say`` is the kernel's side, ``sent`` what the view said."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.table: Any = {}
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def show(
        self,
        table: LineageTable,
        theme: str = "light",
        width: int = 880,
        kept: Mapping[str, Any] | None = None,
    ) -> TablePage:
        self.page.goto("about:blank")
        self.errors.clear()
        self.page.set_viewport_size({"width": width + 32, "height": 700})
        light = str(theme == "light").lower()
        self.page.set_content(
            f"<!doctype html><style>:root {{{theme_variables(theme)}}} body {{ background: "
            f"var(--jp-layout-color0) }}</style><body data-jp-theme-light='{light}' "
            f"style='margin: 16px'><div id=cell style='width: {width}px'></div>"
        )
        self.page.mouse.move(0, 0)
        self.table = view_of(table)
        self.page.evaluate(RENDER, [esm(), css(), self.table, kept or {}])
        expect(self.root).to_have_count(1)
        return self

    @property
    def root(self) -> Locator:
        return self.page.locator(".nbp-runs-table")

    @property
    def rows(self) -> Locator:
        return self.page.locator(".nbp-runs-table tbody tr[data-at]")

    @property
    def filter(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Filter")

    @property
    def foot(self) -> Locator:
        return self.page.locator(".nbp-runs-foot")

    @property
    def said(self) -> Locator:
        return self.page.locator(".nbp-runs-said")

    def row(self, name: str) -> Locator:
        return self.rows.filter(has=self.page.get_by_text(name, exact=True))

    def head(self, column: str) -> Locator:
        return self.page.locator(f'thead button[data-column="{column}"]')

    def heads(self) -> list[str]:
        buttons = self.page.locator("thead button")
        return [one.get_attribute("data-column") or "" for one in buttons.all()]

    def tick(self, name: str) -> Locator:
        return self.page.get_by_role("checkbox", name=f"Show {name} in the Explorer", exact=True)

    def order(self) -> list[str]:
        return self.page.locator(".nbp-runs-table tbody .nbp-runs-name").all_inner_texts()

    def say(self, type: str, **fields: Any) -> None:
        self.page.evaluate("(one) => heard['msg:custom'](one)", {"v": 1, "type": type, **fields})

    def looked(self, again_s: float, problem: str = "") -> None:
        """When there may be more to tell."""
        self.say("looked", again_s=again_s, problem=problem)

    def say_rows(self, at: list[int], columns: list[dict[str, Any]], **fields: Any) -> None:
        """Rows of the table as they are now, and those of runs that have come."""
        view = self.table
        runs = [*view["runs"], *(f"new/{k}.zarr" for k in range(9))]
        labels = [*view["labels"], *(f"new {k}" for k in range(9))]
        told = {"runs": [runs[one] for one in at], "labels": [labels[one] for one in at]}
        told |= {"names": [], "shown": view["shown"], "marks": []}
        self.say("rows", **{**told, "at": at, "columns": columns, **fields})

    def say_line(self, at: int, **fields: Any) -> None:
        """What was read of the record of one row."""
        line = [2.0 / (1 + k / 6) for k in range(40)]
        found = {"scalar": "loss", "line": line, "last": line[-1], "alerts": [], "n_alerts": 0}
        self.say("line", at=at, **{**found, "severe": False, "problem": "", **fields})

    def answer_filter(self, **fields: Any) -> None:
        """Answer the text that was asked last."""
        asked = self.wait_sent("filter")
        answer = {"kind": "condition", "rows": [], "problem": "", **fields}
        self.say("filtered", view=asked["view"], text=asked["text"], **answer)

    def sent(self, type: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(
            "(type) => sent.filter((message) => message.type === type)", type
        )
        return found

    def wait_sent(self, type: str, count: int = 1) -> dict[str, Any]:
        """The newest message of a type, once there are so many."""
        self.page.wait_for_function(
            "([type, count]) => sent.filter((m) => m.type === type).length >= count",
            arg=[type, count],
        )
        return self.sent(type)[-1]

    def saved(self) -> dict[str, Any]:
        """What the view has given the kernel."""
        found: dict[str, Any] = self.page.evaluate("window.saved")
        return found

    def served_by(self, answers: Answers, told: SimpleQueue[dict[str, Any]]) -> Iterator[None]:
        """Carry messages between the view and what answers it, a few at each turn."""
        n_taken = 0
        while True:
            for message in self.page.evaluate("(from) => sent.slice(from)", n_taken):
                n_taken += 1
                answers.receive(message)
            while not told.empty():
                message = told.get()
                self.say(message.pop("type"), **message)
            yield

    def picture(self, name: str) -> None:
        """Keep a screenshot for a person to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")
