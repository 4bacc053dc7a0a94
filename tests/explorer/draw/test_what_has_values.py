"""Which series have a value, and how little is read to know it."""

from __future__ import annotations

import numpy as np

from notebook_probe.explorer.draw import what_has_values
from notebook_probe.explorer.draw.what_has_values import RecordedModules
from notebook_probe.record.format.missing import MEASURED_NAN
from tests.explorer.fakes import FakeSource, FakeStream


def test_a_module_counts_from_its_first_value_on() -> None:
    stream = FakeStream("every_1", ["c", "a", "b"], ["norm", "mean"])
    source, found = FakeSource(stream), RecordedModules()
    found.look(source)
    assert found.modules == {}
    stream.append([0, 1], norm=np.array([[1.0, np.nan, np.nan]] * 2))
    found.look(source)
    assert found.modules == {"norm": ["c"]}
    stream.append([2], norm=np.array([[np.nan, 1.0, MEASURED_NAN]]))
    found.look(source)
    assert found.modules == {"norm": ["a", "b", "c"]}


def test_streams_are_taken_together_and_a_parameter_stands_below_its_module() -> None:
    one, other = (
        FakeStream("every_1", ["b.weight", "b"], ["norm"]),
        FakeStream("s", ["a"], ["norm"]),
    )
    one.append([0], norm=1.0)
    other.append([0], norm=1.0)
    found = RecordedModules()
    found.look(FakeSource(one, other))
    assert found.modules == {"norm": ["a", "b", "b.weight"]}


def test_calls_stand_below_their_module_and_counts_below_what_was_asked_for() -> None:
    stream = FakeStream("every_1", ["b", "b[0]", "b[1]", "a"], ["calls", "norm"])
    stream.append([0], norm=1.0, calls=2.0)
    found = RecordedModules()
    found.look(FakeSource(stream))
    assert list(found.modules) == ["norm", "calls"]
    assert found.modules["norm"] == ["a", "b", "b[0]", "b[1]"]


def test_once_everything_is_found_nothing_more_is_read() -> None:
    stream, found = FakeStream("every_1", ["a", "b"], ["norm"]), RecordedModules()
    source = FakeSource(stream)
    stream.append([0], norm=1.0)
    found.look(source)
    n_read, modules = stream.n_values_read, found.modules
    stream.append(range(1, 10_000), norm=1.0)
    found.look(source)
    assert stream.n_values_read == n_read
    assert found.modules is modules


def test_a_value_in_the_middle_of_a_long_record_is_found_bit_by_bit(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(what_has_values, "VALUES_PER_LOOK", 100)
    stream, found = FakeStream("every_1", ["a", "b"], ["norm"]), RecordedModules()
    values = np.full((1000, 2), np.nan)
    values[500, 0] = values[999, 1] = 1.0
    stream.append(range(1000), norm=values)
    source = FakeSource(stream)
    found.look(source)
    assert found.modules == {"norm": ["b"]}, "the newest row is looked at first"
    for _ in range(10):
        found.look(source)
    assert found.modules == {"norm": ["a", "b"]}
