"""The table of runs in its box: what opens, what stands beside, what views are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
import torch
import traitlets

import notebook_probe as nbp
from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.runs_table import KeptTable, RunsTable, TableSource, runs_box
from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.arriving import Arriving
from notebook_probe.explorer.runs_table.asked import asked
from notebook_probe.explorer.runs_table.filtering import filtered
from notebook_probe.explorer.runs_table.following import RowsToRead
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.explorer.runs_table.reading import Records
from notebook_probe.lineage.row import row_of
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import MOST_CELLS, view_of

TABLE = LineageTable.of([{"run": "a", "lr": 1}, {"run": "b", "lr": 2}, {"run": "gone", "lr": 3}])


class Opened(ipywidgets.Label):
    """Stands for an Explorer."""

    others = traitlets.Tuple()


def opened(place: str) -> Any:
    if place == "gone":
        raise RecordFormatError("no record at gone")
    return Opened(place)


def condition(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """``"lr == 2"``."""
    name, equals, value = text.partition(" == ")
    if not equals:
        raise ValueError(f"no comparison in {text!r}")
    return lambda row: str(row.get(name)) == value


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Any]:
    made = runs_box(TABLE, opened, TableSource(condition, row_of), KeptTable(tmp_path))
    yield made
    made.children[0].close()


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


def test_ticks_are_those_of_the_explorer_and_its_own_are_ticks(box: Any) -> None:
    (table,) = box.children
    table.others = ("b",)
    table.chosen = "a"
    explorer = box.children[1]
    assert explorer.others == ("b",), "also of a run that is opened later"
    table.others = ("b", "gone")
    assert explorer.others == ("b", "gone")
    explorer.others = ("gone",)
    assert table.others == ("gone",)


def test_what_goes_to_the_browser_is_plain(box: Any) -> None:
    (table,) = box.children
    assert table.table == view_of(TABLE)
    assert "nbp-panel" not in table._css
    assert ".nbp-runs-table {" in table._css


@pytest.mark.slow
def test_of_long_tables_fewer_columns_are_sent_at_first() -> None:
    rows = ({"run": str(k), **{f"c{j}": k + j for j in range(30)}} for k in range(5000))
    view = view_of(LineageTable.of(rows))
    assert len(view["columns"]) * 5000 <= MOST_CELLS
    assert len(view["names"]) == 31


@pytest.mark.parametrize(
    "content",
    [None, 3, "hello", [], {}, {"type": 7}, {"type": "sort"}, {"type": ["lines"]}],
)
def test_what_is_no_question_is_not_answered(content: Any) -> None:
    assert asked(content, 3) is None


def test_a_question_has_rows_that_there_are_and_names_that_are_text() -> None:
    found = asked({"type": "lines", "runs": [0, -1, 2, 3, "1", True, None], "names": [1, "a"]}, 3)
    assert found is not None
    assert found["runs"] == [0, 2]
    assert found["names"] == ["a"]


def test_a_text_is_a_condition_else_words_and_a_broken_condition_is_said() -> None:
    rows = [dict(row) for row in TABLE]
    assert filtered("lr == 2", rows, condition).rows == (1,)
    assert filtered("lr is", rows, condition).kind == "words"
    assert filtered("lr < ", rows, condition).problem == "no comparison in 'lr < '"


class Heard:
    """What was sent, waited for."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._news = threading.Condition()

    def __call__(self, message: Mapping[str, Any]) -> None:
        with self._news:
            self.messages.append(dict(message))
            self._news.notify_all()

    def of(self, type: str, count: int = 1) -> list[dict[str, Any]]:
        def found() -> list[dict[str, Any]]:
            return [one for one in self.messages if one["type"] == type]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= count, 30)
        return found()


def step(run: Any, optimizer: Any, model: Any, k: int) -> None:
    optimizer.zero_grad()
    loss = model(torch.ones(4, 3)).square().mean()
    loss.backward()
    run.log(loss=loss)
    optimizer.step()


def test_a_run_that_grows_is_told_until_it_has_ended(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    place = str(tmp_path / "grows.zarr")
    heard = Heard()
    with nbp.watch(model, optimizer, store=place, name="grows") as run:
        for k in range(5):
            step(run, optimizer, model, k)
        run.flush()
        table = LineageTable.of([row_of(nbp.open_run(place)), {"run": str(tmp_path / "none.zarr")}])
        answers = Answers(OpenRows(table), TableSource(condition, row_of), heard)
        answers.receive({"type": "hello"})
        assert heard.of("looked")[-1]["again_s"] == 1
        answers.receive({"type": "lines", "runs": [0, 1]})
        line, missing = sorted(heard.of("line", 2), key=lambda one: one["at"])
        assert line["scalar"] == "loss"
        assert len(line["line"]) >= 4
        assert line["alerts"] == []
        assert missing["problem"].startswith("cannot be read: ")
        for k in range(5, 12):
            step(run, optimizer, model, k)
    answers.receive({"type": "look"})
    assert heard.of("looked", 2)[-1]["again_s"] == 0
    (told,) = heard.of("rows")
    columns = {one["name"]: one["texts"] for one in told["columns"]}
    assert told["at"] == [0]
    assert columns["steps"] == ["12"]
    assert columns["state"] == ["finished"]
    assert len(heard.of("line", 3)[-1]["line"]) > len(line["line"])
    answers.receive({"type": "hello"})  # a view that was made from what was sent at first
    assert heard.of("rows", 2)[-1] == told
    answers.receive({"type": "filter", "view": "v", "text": "steps == 12"})
    assert heard.of("filtered")[-1]["rows"] == (0,), "of the rows as they are now"
    answers.receive({"type": "columns", "names": ["packages.torch", "nothing"]})
    assert [one["name"] for one in heard.of("columns")[-1]["columns"]] == ["packages.torch"]
    answers.close()
    answers.close()


def test_a_silent_run_is_read_again_after_a_while_and_others_only_when_they_have_changed() -> None:
    now, read, changed = [0.0], [], False

    class Never(Records):
        def record(self, place: str) -> Any:
            read.append(place)

        def has_changed(self, place: str) -> bool:
            return changed

    rows = [{"run": "a", "state": "running"}, {"run": "b", "state": "finished"}]
    following = RowsToRead(rows, lambda _: {"state": "idle"}, Never(), lambda: now[0])
    assert following.news() == {}
    now[0] = 61.0
    assert following.news() == {0: {"state": "idle"}}
    assert following.news() == {}
    changed = True
    following.news()
    assert read == ["a", "a"], "it may go on"
    assert following.n == 1


def test_a_table_that_is_closed_answers_nothing() -> None:
    table = RunsTable(TABLE, TableSource(condition, row_of))
    table.close()
    table.close()
    assert table.comm is None


def test_it_is_asked_again_at_a_pace_that_costs_little_and_only_what_is_new_is_told() -> None:
    now, took_s, asked = [0.0], [0.0], []
    rows = [{"run": "a"}]

    def again() -> list[dict[str, str]]:
        asked.append(now[0])
        now[0] += took_s[0]
        return [*rows]

    arriving = Arriving(again, lambda: now[0])
    assert arriving.news() == [{"run": "a"}]
    assert arriving.news() == []
    assert len(asked) == 1, "not before its rest is over"
    now[0], took_s[0] = 2.0, 0.5
    rows.insert(0, {"run": "b"})
    rows.insert(0, {"run": "c"})
    assert [one["run"] for one in arriving.news()] == ["b", "c"]
    assert arriving.rest_s == 10, "a question of half a second may cost a twentieth"
    assert Arriving(None).news() == []
    assert Arriving(None).rest_s == 0


def test_why_it_cannot_be_asked_again_is_told_until_it_can() -> None:
    problems = [OSError("the disk has gone")]

    def again() -> list[dict[str, str]]:
        if problems:
            raise problems.pop()
        return [{"run": "a"}]

    now = [0.0]
    arriving = Arriving(again, lambda: now[0])
    assert arriving.news() == []
    assert arriving.problem == "new runs cannot be looked for: the disk has gone"
    now[0] = 2.0
    assert len(arriving.news()) == 1
    assert arriving.problem == ""


def test_rows_keep_their_places_and_what_comes_is_named_and_shown_as_in_a_new_table() -> None:
    known = [{"run": "r/a.zarr", "name": "net", "lr": 1, "of": "x"}]
    rows = OpenRows(LineageTable.of(known))
    assert rows.take_in(known) == []
    assert rows.take_in([{"run": "r/b.zarr", "name": "net", "lr": 2, "new": 3}]) == [0, 1]
    message = rows.message([0, 1])
    assert message["labels"] == ["a", "b"], "two are called net"
    assert message["names"] == ["new"]
    assert message["shown"] == LineageTable.of(rows.rows).shown() == ["lr"]
    assert rows.take_in([{"run": "r/a.zarr", "name": "net", "lr": 4}]) == [0]
    assert rows.rows[0] == {"run": "r/a.zarr", "name": "net", "lr": 4}
    assert rows.message([0])["columns"][0]["keys"] == [4]


@pytest.mark.parametrize("n", [0, 1])
def test_a_table_that_was_opened_before_any_run_shows_columns_once_there_are_some(n: int) -> None:
    whole = [{"run": f"{k}.zarr", "name": f"{k}", "state": "running", "lr": k} for k in range(3)]
    rows = OpenRows(LineageTable.of(whole[:n]))
    rows.take_in(whole)
    assert rows.standard == LineageTable.of(whole).shown()
    assert rows.message([2])["at"] == [2]
