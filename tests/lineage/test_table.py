"""A table of many runs: sorted, chosen from, taken elsewhere and shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import UnknownNameError
from notebook_probe.lineage.order import places, told
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import view_of
from notebook_probe.record.format.notes import flattened

RUNS = [
    {"run": "r/a", "name": "a", "state": "finished", "config.lr": 0.1, "eval.accuracy": 0.91},
    {"run": "r/b", "name": "b", "state": "finished", "config.lr": 0.2, "eval.accuracy": math.nan},
    {"run": "r/c", "name": "c", "state": "killed", "config.lr": 0.4},
    {"run": "r/d", "name": "d", "state": "finished", "config.lr": 0.4, "eval.accuracy": 0.97},
]
TABLE = LineageTable.of(RUNS)

cells = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
)
json_leaves = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
nested = st.recursive(
    st.dictionaries(st.text().filter(lambda key: "." not in key), json_leaves, max_size=3),
    lambda below: st.dictionaries(
        st.text().filter(lambda key: "." not in key), below | json_leaves, max_size=3
    ),
    max_leaves=10,
)


def folded(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The other way round, by hand."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        *above, last = name.split(".")
        inner = found
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return found


@given(nested)
def test_what_is_flattened_can_be_folded_again(notes: dict[str, Any]) -> None:
    assert folded(dict(flattened(notes))) == notes


# ------------------------------------------------------------------------------ order


@given(st.lists(cells), st.booleans())
def test_every_place_is_there_once_numbers_before_text_before_nothing(
    values: list[Any], descending: bool
) -> None:
    order = places(values, descending=descending)
    assert sorted(order) == [*range(len(values))]
    found = [values[place] for place in order]
    kinds = [
        3 if one is None else (2 if math.isnan(one) else 0) if isinstance(one, int | float) else 1
        for one in found
    ]
    assert kinds == sorted(kinds)
    numbers = [one for one, kind in zip(found, kinds, strict=True) if kind == 0]
    assert numbers == sorted(numbers, reverse=descending)
    texts = [one for one in found if isinstance(one, str)]
    assert all(isinstance(one, str) for one in values) is False or texts == sorted(
        texts, reverse=descending
    )


@given(st.lists(st.integers(0, 2)), st.booleans())
def test_runs_that_are_equal_stay_as_they_stood(values: list[int], descending: bool) -> None:
    order = places(values, descending=descending)
    for value in range(3):
        mine = [place for place in order if values[place] == value]
        assert mine == sorted(mine)


def test_a_table_is_sorted_either_way_with_what_is_missing_last() -> None:
    assert TABLE.sort("eval.accuracy")["name"] == ["a", "d", "b", "c"]
    assert TABLE.sort("eval.accuracy", descending=True)["name"] == ["d", "a", "b", "c"]
    assert TABLE["name"] == ["a", "b", "c", "d"], "the first one is as it was"


# ------------------------------------------------------------------------------ choosing


def test_runs_are_chosen_by_a_value_or_by_what_it_is_like() -> None:
    assert TABLE.where("config.lr", 0.4)["name"] == ["c", "d"]
    assert TABLE.where("eval.accuracy", lambda one: one > 0.9)["name"] == ["a", "d"]
    assert TABLE.where("eval.accuracy", math.isnan)["name"] == ["b"]
    assert len(TABLE.where("name", "nobody")) == 0
    assert repr(TABLE.where("name", "nobody")) == "no runs"


def test_columns_are_chosen_by_name_or_pattern() -> None:
    assert TABLE.select("eval.*", "config.lr").columns == (
        "run",
        "name",
        "eval.accuracy",
        "config.lr",
    )
    assert TABLE.select("nothing.*").columns == ("run", "name")


@pytest.mark.parametrize("use", ["sort", "where", "select", "__getitem__"])
def test_a_wrong_name_is_told_with_those_that_come_near(use: str) -> None:
    arguments = ("eval.acuracy", 1) if use == "where" else ("eval.acuracy",)
    with pytest.raises(UnknownNameError, match=r"eval\.accuracy"):
        getattr(TABLE, use)(*arguments)


def test_a_table_is_a_value() -> None:
    assert LineageTable.of(RUNS) == TABLE
    with pytest.raises(TypeError):
        TABLE.rows[0]["name"] = "x"  # type: ignore[index]
    with pytest.raises(AttributeError):
        TABLE.rows = ()  # type: ignore[misc]
    assert [dict(row)["name"] for row in TABLE] == ["a", "b", "c", "d"]


# ------------------------------------------------------------------------------ elsewhere


def test_pandas_gets_all_columns_and_rows() -> None:
    frame = TABLE.to_pandas()
    assert [*frame.columns] == [*TABLE.columns]
    assert frame["config.lr"].tolist() == [0.1, 0.2, 0.4, 0.4]
    assert pd.isna(frame["eval.accuracy"]).tolist() == [False, True, True, False]
    empty = LineageTable.of([])
    assert empty.to_pandas().empty
    assert empty.columns == ()


@given(st.lists(st.dictionaries(st.text(), cells, max_size=3), max_size=3))
def test_any_table_is_json_text_and_html(rows: list[dict[str, Any]]) -> None:
    table = LineageTable.of(rows)
    json.dumps(table.plain(), allow_nan=False)
    assert repr(table)
    assert table._repr_html_()


# ------------------------------------------------------------------------------ shown


def test_what_differs_is_shown_and_what_is_the_same_is_told_below() -> None:
    rows = [
        {
            "run": f"r/{n}",
            "name": f"n{n}",
            "config.lr": n,
            "config.size": 4,
            "train.lr": n,
            "x": None,
        }
        for n in range(3)
    ]
    rows[1]["config.size"] = None
    table = LineageTable.of(rows)
    assert table.shown() == ["config.lr"], "train.lr says what config.lr says"
    assert table.differing == ("run", "name", "config.lr", "train.lr")
    assert table.same == {"config.size": 4}
    assert repr(table).splitlines() == [
        "run  config.lr",
        "n0   0",
        "n1   1",
        "n2   2",
        "only in some: config.size 4 (2 of 3)",
    ]
    rows[1]["config.size"] = 4
    assert repr(LineageTable.of(rows)).splitlines()[-1] == "the same in all 3: config.size 4"
    rare = LineageTable.of(
        [{**row, "error": "a\n <b>" if row["config.lr"] else None} for row in rows]
    )
    assert repr(rare).splitlines()[-1] == "only in some: error a <b> (2 of 3)"
    assert rare._repr_html_().endswith("<p>only in some: error a &lt;b&gt; (2 of 3)</p>")


def test_names_of_runs_and_columns_are_escaped() -> None:
    row = {"name": "<script>alert(1)</script>", "config.<b>": "<i>", "same": "<u>"}
    html = LineageTable.of([row, {**row, "name": "b", "config.<b>": "c"}])._repr_html_()
    for tag in ("<script", "<b>", "<i>", "<u>"):
        assert tag not in html
    assert "&lt;script&gt;" in html
    assert "&lt;u&gt;" in html


def test_a_long_text_is_cut_in_a_cell() -> None:
    assert told("x" * 100) == "x" * 39 + "…"
    assert told(1e-7) == "1e-07"
    assert told(math.inf) == "inf"


def test_runs_of_one_name_are_called_by_where_they_are() -> None:
    rows = [{"run": f"/runs/{n}/x.zarr", "name": "Net", "lr": n} for n in (1, 2)]
    assert LineageTable.of(RUNS).labels == ["a", "b", "c", "d"]
    assert LineageTable.of(rows).labels == ["1/x", "2/x"]
    others = [{"run": f"/lab/{one}.zarr", "name": "Net"} for one in ("a/first", "b/first", "c")]
    assert LineageTable.of([*rows, *others]).labels == ["1/x", "2/x", "a/first", "b/first", "c"]
    rows = [{"run": f"/runs/{n}.zarr/", "name": "Net", "lr": n * 2} for n in "ab"]
    assert LineageTable.of(rows).labels == ["a", "b"]
    assert repr(LineageTable.of(rows)).splitlines()[0] == "run  lr", "what all are called is below"


@given(st.lists(st.dictionaries(st.sampled_from("abc"), cells, max_size=3), min_size=1, max_size=5))
def test_a_view_is_json_whose_keys_have_the_order_of_sort(rows: list[dict[str, Any]]) -> None:
    table = LineageTable.of([{"run": str(n), **row} for n, row in enumerate(rows)])
    view = json.loads(json.dumps(view_of(table), allow_nan=False))
    assert view["names"] == [*table.columns]
    for column in view["columns"]:
        assert column["texts"] == [told(one) for one in table[column["name"]]]
        for descending in (False, True):
            runs = [view["runs"][at] for at in ordered(column["keys"], descending)]
            assert runs == table.sort(column["name"], descending=descending)["run"]


def ordered(keys: list[Any], descending: bool) -> list[int]:
    """As the view orders them: numbers, text, NaN, missing."""

    def having(is_kind: Callable[[Any], bool]) -> list[int]:
        return [at for at, key in enumerate(keys) if is_kind(key)]

    numbers = having(lambda key: isinstance(key, int | float) and key is not False)
    texts = having(lambda key: isinstance(key, str))
    for one in (numbers, texts):
        one.sort(key=keys.__getitem__, reverse=descending)
    return [*numbers, *texts, *having(lambda key: key is False), *having(lambda key: key is None)]
