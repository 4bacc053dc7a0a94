"""Name, tags and note of a run, edited in the table of all runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.catalogues.marks import read
from notebook_probe.catalogues.runs import Runs
from notebook_probe.explorer.runs_table import TableSource
from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.asked import asked
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from tests.catalogues.marks.recorded import recorded


class Served:
    """A table of runs and what its views are sent."""

    def __init__(self, runs: Runs) -> None:
        self._heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
        source = TableSource(runs._condition, runs._read_row, None, runs._mark)
        self.rows = OpenRows(runs)
        self.answers = Answers(self.rows, source, lambda one: self._heard.put(dict(one)))

    def mark(self, field: str, text: str, at: int = 0) -> dict[str, Any]:
        """Mark a run, and return the rows that the views were sent, with the result."""
        message = {"type": "mark", "view": "v", "runs": [at], "names": [field], "text": text}
        self.answers.receive(message)
        found = [self._heard.get(timeout=20)]
        while found[-1]["type"] != "marked":
            found.append(self._heard.get(timeout=20))
        return {**found[0], "problem": found[-1]["problem"]}


@pytest.fixture
def cat(tmp_path: Path) -> Iterator[nbp.Catalogue]:
    (tmp_path / "runs").mkdir()
    for name in ("one", "two"):
        recorded(tmp_path / "runs" / f"{name}.zarr", name="net")
    with nbp.catalogue(tmp_path / "index.sqlite", root=tmp_path / "runs") as found:
        yield found


@pytest.fixture
def table(cat: nbp.Catalogue, tmp_path: Path) -> Iterator[Served]:
    served = Served(cat.runs(lambda row: str(row["run"]).startswith(str(tmp_path))))
    yield served
    served.answers.close()


def test_what_is_typed_is_stored_with_the_record_and_told_to_every_view(
    table: Served, cat: nbp.Catalogue
) -> None:
    place = str(table.rows.rows[0]["run"])
    told = table.mark("tags", "good, for the paper,, good")
    assert told["problem"] == ""
    assert told["marks"][0]["tags"] == ["good", "for the paper"]
    table.mark("note", "the third\nof many")
    assert table.mark("tags", "star")["marks"][0]["tags"] == ["star"], "those before are replaced"
    told = table.mark("name", " deep ")
    assert told["labels"] == ["deep", "net"], "the other needs no folder in its label any more"
    kept = {"tags": ["star"], "note": "the third\nof many", "archived": False, "name": "deep"}
    assert read(place) == kept
    [found] = cat.runs("name == 'deep' and tags has 'star'")
    assert found["run"] == place
    cat.rename("deep", "")
    assert read(place)["note"] == "the third\nof many"
    assert [row["name"] for row in cat.runs("tags has 'star'")] == ["net"]


def test_an_empty_name_brings_the_title_back(table: Served) -> None:
    assert table.mark("name", "deep")["labels"][0] == "deep"
    assert table.mark("name", "")["marks"][0]["name"] == "net"


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("name", "x" * 101, "at most 100"),
        ("note", "x" * 10_001, "at most 10000 characters"),
        ("tags", "x" * 101, "at most 100 characters"),
    ],
    ids=["name", "note", "tags"],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(
    table: Served, field: str, text: str, why: str
) -> None:
    told = table.mark(field, text)
    assert why in told["problem"]
    assert read(str(table.rows.rows[0]["run"])) == {"tags": [], "note": "", "archived": False}


def test_a_record_that_has_gone_says_so(table: Served, tmp_path: Path) -> None:
    table.rows.rows[0]["run"] = str(tmp_path / "gone.zarr")
    assert "no record in" in table.mark("note", "x")["problem"]


@pytest.mark.parametrize("names", [[], ["state"], ["note", "tags"]], ids=str)
def test_only_one_field_of_one_run_is_marked_at_a_time(names: list[str]) -> None:
    message = {"type": "mark", "runs": [0], "names": names, "text": "x"}
    assert asked(message, 2) is None
    assert asked({**message, "names": ["note"], "runs": [0, 1]}, 2) is None
    assert asked({**message, "names": ["note"], "runs": [7]}, 2) is None
