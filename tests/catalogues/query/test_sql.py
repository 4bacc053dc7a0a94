"""What a database says of a condition is what Python says, on a real SQLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    insert,
    select,
)
from sqlalchemy.pool import StaticPool

from notebook_probe.catalogues.index import Index
from notebook_probe.catalogues.index.database import IN_MEMORY, open_database
from notebook_probe.catalogues.query import Condition, Row, condition, entries
from tests.catalogues.query import conditions as drawn
from tests.catalogues.query.by_hand import check_answers

META = MetaData()
ENTRIES = Table(
    "entries",
    META,
    Column("run", Integer),
    Column("field", Text),
    Column("kind", Text),
    Column("number", Float),
    Column("text", LargeBinary),
)
RUNS = Table("runs", META, Column("id", Integer, primary_key=True))
ENGINE = create_engine("sqlite://", poolclass=StaticPool)
META.create_all(ENGINE)


class Columns:
    """The smallest index there can be."""

    def any(
        self, field: str, test: Callable[[Any], ColumnElement[bool]] | None
    ) -> ColumnElement[bool]:
        found = select(ENTRIES.c.run).where(ENTRIES.c.field == field)
        return RUNS.c.id.in_(found if test is None else found.where(test(ENTRIES.c)))


def found_by_sql(asked: Condition, rows: Sequence[Row]) -> tuple[set[int], bool] | None:
    """The places of rows that the database finds, and whether it says these are all and only."""
    sql = asked.sql(Columns())
    if sql is None:
        return None
    with ENGINE.begin() as connection:
        connection.execute(RUNS.delete())
        connection.execute(ENTRIES.delete())
        lying = [
            {"run": place, "field": field, **flat._asdict()}
            for place, row in enumerate(rows)
            for field, flat in entries(row)
        ]
        if rows:
            connection.execute(insert(RUNS), [{"id": place} for place in range(len(rows))])
        if lying:
            connection.execute(insert(ENTRIES), lying)
        ids = connection.execute(select(RUNS.c.id).where(sql.expression)).scalars()
        return set(ids), sql.exact


def agree(asked: Condition, rows: Sequence[Row]) -> None:
    found = found_by_sql(asked, rows)
    matching = {place for place, row in enumerate(rows) if asked.matches(row)}
    if found is not None:
        assert matching <= found[0]
        assert not found[1] or found[0] == matching


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(drawn.conditions, st.lists(drawn.rows, max_size=4))
def test_a_database_finds_what_matches(asked: Condition, rows: list[dict[str, Any]]) -> None:
    agree(asked, rows)


@settings(max_examples=100, deadline=None)
@given(drawn.simple, drawn.values)
def test_a_database_finds_what_matches_where_the_field_is_there(
    asked: Condition, value: Any
) -> None:
    (field,) = asked.fields
    agree(asked, [{field: list(value) if isinstance(value, tuple) else value}])


@pytest.mark.parametrize(
    "text",
    [
        "lr < 1e-3",
        "lr >= 0",
        "state == 'finished'",
        "state != 'killed' and lr == 0.1",
        "created > '2026-01-01' or not pretrained == true",
        "state in ['finished', 'running', 3]",
        "lr is missing",
        "loss is nan",
    ],
)
def test_what_is_commonly_asked_needs_no_second_look(text: str) -> None:
    sql = condition(text).sql(Columns())
    assert sql is not None
    assert sql.exact


@pytest.mark.parametrize("name", drawn.INJECTIONS)
def test_names_and_values_reach_the_database_as_values(name: str) -> None:
    rows: list[dict[str, Any]] = [{name: name}, {name: "other"}, {"lr": 1}]
    for asked in (condition({name: name}), condition({name: {"$in": [name]}})):
        assert found_by_sql(asked, rows) == ({0}, True)
    agree(condition({name: {"$ne": name}}), rows)


def test_a_condition_of_more_parts_than_a_database_takes_is_still_answered() -> None:
    rows = [{"seed": place} for place in range(3)]
    many = " or ".join(f"seed == {place}" for place in range(1, 5000))
    agree(condition(many), rows)
    agree(condition({"seed": {"$in": list(range(1, 5000))}}), rows)
    agree(condition(many.replace(" or ", " and ")), rows)


def test_every_operator_by_hand_in_sqlite() -> None:
    index = Index(open_database(IN_MEMORY))
    check_answers(index)
    index.close()
