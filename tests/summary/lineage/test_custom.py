"""What the user says of a run, over what the environment says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import RecordWarning
from notebook_probe.summary.lineage.custom import (
    HYPER_CONFIG,
    MOST_CHARACTERS,
    checked_custom,
    custom_lineage,
)

values = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
customs = st.dictionaries(st.text(), values, max_size=5)


@pytest.mark.slow
@given(customs, customs)
def test_the_users_own_wins_over_the_environment(
    own: dict[str, Any], theirs: dict[str, Any]
) -> None:
    found = custom_lineage(own, {HYPER_CONFIG: json.dumps(theirs)})
    assert found == {**theirs, **own}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_without_either_there_is_nothing() -> None:
    assert custom_lineage(None, {}) == {}
    assert custom_lineage({"a": 1}, {}) == {"a": 1}


def test_numbers_that_json_has_not_are_text() -> None:
    assert checked_custom({"a": float("nan"), "b": float("-inf")}) == {"a": "nan", "b": "-inf"}


@pytest.mark.parametrize(
    "given", [[], 3, "x", {1: 1}, {"a": True}, {"a": None}, {"a": [1]}, {"a": {}}, {"a": 1j}]
)
def test_anything_else_is_a_type_error(given: object) -> None:
    with pytest.raises(TypeError, match="custom_lineage_data"):
        custom_lineage(given, {})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"a": true}', '{"a": [1]}', "[" * 5000, '{"a": null}', "nul"],
)
def test_a_bad_variable_is_left_out_with_a_warning(text: str) -> None:
    with pytest.warns(RecordWarning, match=f"{HYPER_CONFIG} is left out"):
        assert custom_lineage({"b": 2}, {HYPER_CONFIG: text}) == {"b": 2}


def test_a_hundred_thousand_characters_are_read_and_one_more_is_not() -> None:
    room = MOST_CHARACTERS - len('{"a": ""}')
    text = json.dumps({"a": "x" * room})
    assert len(text) == MOST_CHARACTERS
    assert len(str(custom_lineage(None, {HYPER_CONFIG: text})["a"])) == room
    with pytest.warns(RecordWarning, match="has 100001 characters; at most 100000"):
        assert custom_lineage(None, {HYPER_CONFIG: text + " "}) == {}
