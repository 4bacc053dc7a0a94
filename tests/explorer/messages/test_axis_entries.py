"""Calls and parameters stand on the screen directly below their module."""

from __future__ import annotations

import pytest

from notebook_probe.explorer.messages.axis_entries import axis_order, in_order, owner_of
from tests.explorer.fakes import FakeSource, FakeStream

TABLE = ["(root)", "rnn", "rnn.cell", "fc1", "fc10"]


@pytest.mark.parametrize(
    ("entry", "owner"),
    [
        ("fc1.weight", "fc1"),
        ("fc10.weight", "fc10"),
        ("rnn.cell[12]", "rnn.cell"),
        ("rnn.cell.gate.bias", "rnn.cell"),
        ("(root)[0]", "(root)"),
        ("scale", "(root)"),
        ("gone.weight", "(root)"),
        ("", "(root)"),
    ],
)
def test_an_entry_belongs_to_the_nearest_module_its_name_begins_with(
    entry: str, owner: str
) -> None:
    assert owner_of(entry, set(TABLE)) == owner


def test_calls_are_counted_upwards_after_the_parameters_of_their_module() -> None:
    names = [*(f"rnn.cell[{call}]" for call in (10, 9, 0, 1)), "fc1", "rnn.cell.bias", "(root)[0]"]
    assert in_order(TABLE, names) == [
        "(root)",
        "(root)[0]",
        "rnn",
        "rnn.cell",
        "rnn.cell.bias",
        "rnn.cell[0]",
        "rnn.cell[1]",
        "rnn.cell[9]",
        "rnn.cell[10]",
        "fc1",
        "fc10",
    ]


def test_a_module_whose_name_looks_like_a_call_is_a_module() -> None:
    assert in_order(["(root)", "a", "a[0]", "b"], ["b", "a[0]"]) == ["(root)", "a", "a[0]", "b"]


def test_without_a_table_entries_stand_as_they_come() -> None:
    assert in_order([], ["b", "a", "b"]) == ["b", "a"]


def test_every_stream_has_its_say() -> None:
    streams = FakeStream("s", ["c", "a[1]"], ["n"]), FakeStream("t", ["a[0]", "b.bias"], ["n"])
    order = ["(root)", "a", "a[0]", "a[1]", "b", "b.bias", "c"]
    assert axis_order(FakeSource(*streams)) == order
