"""A dataset graph as a value: to JSON and back, and read from a record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph, read_dataset_graph
from notebook_probe.record.format.source import Event

scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
settings = st.dictionaries(st.text(), scalars | st.lists(scalars, max_size=3), max_size=3)


def _part(parts: st.SearchStrategy[tuple[DataPart, ...]]) -> st.SearchStrategy[DataPart]:
    return st.builds(
        DataPart,
        st.text(),
        st.sampled_from(["loader", "dataset"]),
        st.text(),
        st.none() | st.integers(0),
        settings,
        parts,
        st.integers(0, 9),
    )


def _above(below: st.SearchStrategy[DataPart]) -> st.SearchStrategy[DataPart]:
    return _part(st.lists(below, max_size=3).map(tuple))


@given(st.recursive(_part(st.just(())), _above, max_leaves=12))
def test_a_graph_comes_back_from_json_as_it_was(root: DataPart) -> None:
    graph = DatasetGraph(root)
    assert DatasetGraph.of(json.loads(json.dumps(graph.plain()))) == graph
    assert len(repr(graph).split("\n")) >= len([*graph])


def noted(**detail: Any) -> Event:
    return Event(0, 0, "dataset_graph", "", json.dumps(detail))


GRAPH = DatasetGraph(DataPart("", "loader", "DataLoader", 3))


def test_the_newest_that_can_be_read_counts() -> None:
    newer = DatasetGraph(DataPart("", "data", "list", 5))
    good = [noted(graph=GRAPH.plain()), noted(graph=newer.plain())]
    assert read_dataset_graph(good) == newer
    assert read_dataset_graph([Event(0, 0, "note", "x")]) is None
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {**GRAPH.plain()["root"], "parts": [deep] if deep else []}
    bad = [
        noted(graph=3),
        noted(other=1),
        noted(graph={**GRAPH.plain(), "version": 2}),
        noted(graph={"version": 1, "root": deep}),
        Event(0, 0, "dataset_graph", "", "{"),
    ]
    assert read_dataset_graph([*good, *bad]) == newer
    for one in bad:
        assert read_dataset_graph([one]) is None


@pytest.mark.parametrize("length", [None, 0, 1234567])
def test_it_prints_as_a_tree(length: int | None) -> None:
    inner = DataPart("dataset", "dataset", "Digits", length, {"path": "a b", "n": [1]}, (), 2)
    text = repr(DatasetGraph(DataPart("", "loader", "DataLoader", None, {}, (inner,))))
    told = {None: "", 0: " (0)", 1234567: " (1\u2009234\u2009567)"}[length]
    assert text == f"DataLoader\n  dataset: Digits{told}: path=a b, n=[1], 2 more parts"
