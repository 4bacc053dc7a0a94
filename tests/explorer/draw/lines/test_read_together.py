"""A stream that is read once for many series has the numbers of one that is read for each."""

from __future__ import annotations

import numpy as np
import pytest

from notebook_probe.explorer.draw.lines import read_together
from notebook_probe.explorer.draw.lines.read_together import ReadTogether
from tests.explorer.fakes import FakeStream

NAMES = [f"m{k}" for k in range(20)]
WANTED = {"norm": ["m3", "m17", "m5"]}


@pytest.fixture
def stream() -> FakeStream:
    stream = FakeStream("every_1", NAMES, ["norm", "mean"])
    values = np.random.default_rng(0).normal(size=(100, len(NAMES)))
    stream.append(range(0, 300, 3), norm=values, mean=2 * values)
    return stream


def test_every_series_has_its_own_numbers(stream: FakeStream) -> None:
    together = ReadTogether(stream, WANTED)
    for modules in (["m5"], ["m17", "m3"], ["m0"], None):
        for quantity in ("norm", "mean"):
            found = together.values(quantity, 10, 60, modules)
            assert np.array_equal(found, stream.values(quantity, 10, 60, modules))
    assert np.array_equal(together.steps(4, 9), stream.steps(4, 9))
    assert np.array_equal(
        together.values("norm", 90, None, ["m3"])[:, 0], stream.values("norm", 90)[:, 3]
    )


def test_it_is_read_once_for_all_that_are_wanted(stream: FakeStream) -> None:
    together = ReadTogether(stream, WANTED)
    before = stream.n_values_read
    for module in WANTED["norm"]:
        together.values("norm", 0, 100, [module])
    assert stream.n_values_read - before == 3 * 100


def test_a_long_range_is_read_for_one_series_at_a_time(
    stream: FakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_together, "MOST_VALUES", 150)
    together = ReadTogether(stream, WANTED)
    before = stream.n_values_read
    together.values("norm", 0, 51, ["m3"])
    assert stream.n_values_read - before == 51


def test_it_stays_as_long_as_it_was(stream: FakeStream) -> None:
    together = ReadTogether(stream, WANTED)
    stream.append([300], norm=1.0)
    assert together.n_rows == 100
    assert len(together.values("norm", 0, None, ["m3"])) == 100
