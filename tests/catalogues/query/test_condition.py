"""What conditions mean, and what is said to one that cannot be read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.catalogues.query import Condition, condition
from notebook_probe.errors import QueryError, UnknownNameError
from tests.catalogues.query import conditions as drawn
from tests.catalogues.query.by_hand import CASES

WORDS = [
    "a",
    "b.c",
    "and",
    "not",
    "(",
    ")",
    "[",
    ",",
    "<",
    "==",
    "1",
    "'x'",
    "is",
    "nan",
    "in",
    "has",
]


@pytest.mark.parametrize(("where", "value", "wanted"), [*CASES, ("lr AND", 0, QueryError)])
def test_every_operator_means_what_it_says(where: str, value: Any, wanted: Any) -> None:
    if wanted is QueryError:
        with pytest.raises(QueryError):
            condition(where)
    else:
        assert condition(where).matches({"lr": value}) is wanted
        assert condition(where).matches({"lr": value, "other": 1}) is wanted


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({"lr": 0.1}, "lr == 0.1"),
        ({"lr": {"$lt": 1}}, "lr < 1"),
        ({"lr": {"$lte": 1}}, "lr <= 1"),
        ({"lr": {"$gt": 1}}, "lr > 1"),
        ({"lr": {"$gte": 1}}, "lr >= 1"),
        ({"lr": {"$ne": "a"}}, "lr != 'a'"),
        ({"lr": {"$in": [1, "a"]}}, "lr in [1, 'a']"),
        ({"lr": {"$in": {1}}}, "lr in [1]"),
        ({"lr": {"$gt": 1, "$lt": 2}}, "lr > 1 and lr < 2"),
        ({"lr": None}, "lr is missing"),
        ({"lr": {"$ne": None}}, "lr is not missing"),
        ({"lr": {"$in": [None, 1]}}, "lr is missing or lr in [1]"),
        ({"lr": True, "n": [1, 2]}, "lr == true and n == [1, 2]"),
        ({"lr": np.float64(0.5), "n": np.int64(3)}, "lr == 0.5 and n == 3"),
        ({"params": {"model": {"depth": {"$gt": 3}}}}, "params.model.depth > 3"),
        ({"params.model.depth": {"$gt": 3}}, "config.model.depth > 3"),
        ({"my key": 1, "in": 2}, "`my key` == 1 and `in` == 2"),
        ({}, ""),
        (None, "  \n"),
    ],
)
def test_a_dict_is_the_same_condition_as_the_text(where: Any, text: str) -> None:
    assert condition(where) == condition(text)


@settings(max_examples=100, deadline=None)
@given(drawn.conditions)
def test_the_text_of_a_condition_reads_back_as_it(asked: Condition) -> None:
    assert condition(str(asked)) == asked


@given(drawn.conditions, drawn.rows)
def test_not_is_plain_negation(asked: Condition, row: dict[str, Any]) -> None:
    assert condition(f"not ({asked})").matches(row) is not asked.matches(row)


@given(st.text(max_size=30) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_a_text_is_a_condition_or_an_error_of_ours(text: str) -> None:
    asked = None
    with suppress(QueryError):
        asked = condition(text)
    if asked is not None:
        asked.matches({"a": 1})
        assert condition(str(asked)) == asked


def test_and_binds_before_or_and_not_before_both() -> None:
    asked = condition("a == 1 or b == 1 and not c == 1 and d == 1")
    assert asked == condition("a == 1 or (b == 1 and (not c == 1) and d == 1)")
    assert asked.matches({"a": 1})
    assert not asked.matches({"b": 1, "c": 1, "d": 1})
    assert condition("(a == 1 or b == 1) and c == 1").matches({"a": 1}) is False


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("lr << 3", "at '<< 3': '<' means nothing here"),
        ("lr <", "at 'its end': a number, text in quotes, true, false or a list is expected"),
        ("lr = 3", "at '= 3': '=' is not known; '==' is meant"),
        ("lr < 3 && a == 1", "'&&' is not known; 'and' is meant"),
        ("lr < 3 lr > 1", "at 'lr > 1': 'and', 'or' or the end is expected"),
        ("1e-4 < lr", "at '1e-4 < lr': the name of a field, 'not' or '(' is expected"),
        ("state == finished", "at 'finished': a number, text in quotes"),
        ("state == 'finished", "' opens what nothing closes"),
        ("(lr < 3", "')' is expected"),
        ("lr in 3", "a list such as [1, 2] is expected"),
        ("lr in [1 2]", "at '2]': ',' or ']' is expected"),
        ("lr is 3", "missing or nan is expected"),
        ("lr == nan", "nothing compares with NaN; 'is nan' asks for it"),
        ("lr < true", "at 'true': < compares numbers and text"),
        ("lr < none", "a number, text in quotes"),
        ("lr == 1e999", "a number that is too great"),
        ("lr == " + "9" * 5000, "a number of too many digits"),
        (r"path == 'C:\data'", r"\d means nothing in a text; a backslash is written \\"),
        ("3d.loss < 1", "a name that begins with a digit goes in backticks"),
        ("lr", "==, !=, <, <=, >, >=, in, has or is is expected"),
        ("not " * 60 + "a == 1", "deeper than 50"),
        ("(" * 10_000, "deeper than 50"),
        ("a == " + "[" * 10_000, "is expected"),
        ("x" * 80 + " ! 3", "'!' is not known; 'not' is meant"),
        ({"lr": {"$lr": 1}}, "where['lr']: no operator '$lr'; close: '$lt'"),
        ({"lr": {"$lt": 1, "a": 2}}, "no operator 'a'"),
        ({"$or": [{"a": 1}]}, "'$or' is given where a field is expected"),
        ({"lr": {"$in": "abc"}}, "$in 'abc'; a list is expected"),
        ({"lr": {"$lt": None}}, "where['lr']: None; numbers, text, bools and lists compare"),
        ({"lr": {"$lt": True}}, "numbers and text have an order, true has none"),
        ({"lr": float("nan")}, "nothing compares with NaN"),
        ({"lr": object}, "numbers, text, bools and lists compare"),
        ({"lr": {}}, "a value or one of $lt"),
        ({"lr": 1 << 20_000}, "a number of 20001 bits"),
        ({3: 1}, "3 in 'the dict' names no field"),
        (3, "where=3; text, a dict, a function of a row or None"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(where: Any, says: str) -> None:
    with pytest.raises(QueryError) as caught:
        condition(where)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(QueryError, match="deeper"):
        condition({"lr": endless})


def test_a_field_that_no_run_has_is_told_with_near_names() -> None:
    asked = condition("params.lrr < 1 and state == 'finished'")
    with pytest.raises(UnknownNameError, match=r"no run has 'config.lrr'; close: 'config.lr'"):
        asked.check(["config.lr", "state"])
    asked.check(["config.lrr", "state"])
    asked.check([])


def test_a_function_is_asked_and_its_error_names_the_run() -> None:
    assert condition(lambda row: row["lr"] < 1).matches({"lr": 0})
    with pytest.raises(QueryError, match=r"of the run 'a.zarr' it raised KeyError: 'lr'"):
        condition(lambda row: row["lr"]).matches({"run": "a.zarr"})


def test_nothing_is_evaluated() -> None:
    for attempt in (
        "__import__('os')",
        "a == __import__('os')",
        "a.__class__()",
        "a == (lambda: 1)()",
    ):
        with pytest.raises(QueryError):
            condition(attempt)
    row = {"x": 1}
    assert not condition("x.__class__ == 1").matches(row)
    assert condition({"x": "1 or True"}) == condition("x == '1 or True'")


def test_conditions_are_values() -> None:
    asked = condition("a in [1, 2] and not b has 'c'")
    assert {asked: 1}[condition(str(asked))] == 1
    assert condition(asked) is asked


def test_a_slip_in_the_other_name_of_a_configuration_is_told_its_neighbour() -> None:
    with pytest.raises(UnknownNameError, match=r"no run has 'parms.lr'; close: 'params.lr'"):
        condition("parms.lr < 1").check({"config.lr", "steps", "loss.last"})
