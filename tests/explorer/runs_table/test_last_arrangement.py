"""The arrangement of a table of runs: columns, order, filter and picture, there again next time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.explorer.runs_table import KeptTable, TableSource, runs_box
from notebook_probe.explorer.runs_table.last_arrangement import FILE_NAME
from notebook_probe.lineage.row import row_of
from notebook_probe.lineage.table import LineageTable

TABLE = LineageTable.of([{"run": "a", "lr": 1}, {"run": "b", "lr": 2}])
ARRANGED: dict[str, Any] = {
    "columns": ["lr"],
    "sorted": {"name": "lr", "down": True},
    "filter": "lr > 1",
    "picture": {"kind": "scatter", "x": "lr", "y": "loss.last", "colour": "", "by": ""},
}


def box_in(folder: Path | None) -> Any:
    def condition(text: str) -> Any:
        raise ValueError(text)

    return runs_box(TABLE, lambda place: None, TableSource(condition, row_of), KeptTable(folder))  # type: ignore[arg-type, return-value]


def test_the_next_table_of_a_folder_is_arranged_as_the_last_one(tmp_path: Path) -> None:
    first = box_in(tmp_path / "new folder").children[0]
    assert first.kept == {}
    first.kept = ARRANGED
    assert json.loads((tmp_path / "new folder" / FILE_NAME).read_text()) == ARRANGED
    assert [one.name for one in (tmp_path / "new folder").iterdir()] == [FILE_NAME]
    assert box_in(tmp_path / "new folder").children[0].kept == ARRANGED
    assert box_in(tmp_path).children[0].kept == {}, "another folder"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", {}),
        ("[1, 2]", {}),
        ('{"columns": "lr", "filter": 3, "sorted": []}', {}),
        ('{"columns": null, "sorted": {"name": 1}}', {"columns": None, "sorted": {}}),
    ],
    ids=["empty", "a list", "other types", "half of it"],
)
def test_a_damaged_file_counts_as_far_as_it_can_be_read(
    tmp_path: Path, text: str, read: dict[str, Any]
) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert KeptTable(tmp_path).read() == read


def test_where_nothing_can_be_written_the_table_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", None):
        table = box_in(folder).children[0]
        table.kept = ARRANGED
        assert KeptTable(folder).read() == {}
