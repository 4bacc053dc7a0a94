"""The table of runs in its box: what a click opens, and what takes the place of what."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest

from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.runs_table import runs_box
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import view_of

TABLE = view_of(LineageTable.of([{"run": "a", "lr": 1}, {"run": "b", "lr": 2}]))


def opened(place: str) -> Any:
    if place == "gone":
        raise RecordFormatError("no record at gone")
    return ipywidgets.Label(place)


@pytest.fixture
def box() -> ipywidgets.VBox:
    return runs_box(TABLE, opened)


def test_a_chosen_run_stands_below_and_the_next_one_takes_its_place(box: Any) -> None:
    (table,) = box.children
    table.chosen = "a"
    first = box.children[1]
    assert first.value == "a"
    table.chosen = "b"
    assert [one.value for one in box.children[1:]] == ["b"]
    assert first.comm is None, "the one before is closed"
    table.chosen = ""
    assert box.children == (table,)


def test_a_run_that_cannot_be_opened_is_said(box: Any) -> None:
    (table,) = box.children
    table.chosen = "a"
    table.chosen = "gone"
    assert box.children == (table,)
    assert table.said == "no record at gone"
    table.chosen = "b"
    assert table.said == ""
    assert len(box.children) == 2


def test_what_goes_to_the_browser_is_plain(box: Any) -> None:
    (table,) = box.children
    assert table.table == TABLE
    assert "nbp-panel" not in table._css
    assert ".nbp-runs {" in table._css
