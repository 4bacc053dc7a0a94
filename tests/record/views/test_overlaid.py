"""Streams one by one: of a cell that was written over only the last value is found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.record import RecordWriter, Source, open_record
from notebook_probe.record.format.missing import measured
from tests.record.build import GRAD, fill, new_writer

MODULES = ("conv1", "fc")
N_STEPS = 20


def cells(source: Source) -> Counter[tuple[str, int, float]]:
    """Every measured (module, step, value) of all streams."""
    found: Counter[tuple[str, int, float]] = Counter()
    for stream in source.streams.values():
        values = stream.values("grad_norm")
        for row, column in np.argwhere(measured(values)):
            step = int(stream.steps()[row])
            found[stream.modules[column], step, float(values[row, column])] += 1
    return found


def joined(source: Source) -> Counter[tuple[str, int, float]]:
    series = {module: source.series(module, "grad_norm") for module in MODULES}
    return Counter(
        (module, int(step), float(value))
        for module, one in series.items()
        for step, value in zip(one.step, one, strict=True)
    )


def recorded(folder: Path) -> RecordWriter:
    writer = new_writer(folder)
    stream = writer.stream("every_1")
    stream.extend(MODULES, [GRAD])
    fill(stream, range(N_STEPS))
    return writer


writes = st.lists(
    st.tuples(
        st.sampled_from(MODULES),
        st.lists(st.integers(0, N_STEPS + 5), min_size=1, max_size=5, unique=True),
    ),
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(writes)
def test_each_cell_is_in_one_stream_with_the_value_written_last(
    tmp_path_factory: pytest.TempPathFactory, given_writes: list[tuple[str, list[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("record")
    with recorded(folder) as writer:
        for number, (module, steps) in enumerate(given_writes):
            writer.backfill(module, "grad_norm", steps, [-1.0 - number] * len(steps))
        assert cells(writer.source) == joined(writer.source)
        assert max(cells(writer.source).values()) == 1
    record = open_record(folder)
    assert cells(record) == joined(record)


def test_a_stream_that_is_written_over_changes_its_version(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        versions = [writer.source.streams["every_1"].version]
        for step in (3, 3, 1):
            writer.backfill("fc", "grad_norm", step, -1.0)
            versions.append(writer.source.streams["every_1"].version)
        assert len(set(versions)) == len(versions)
        part = writer.source.streams["every_1"].values("grad_norm", 2, 5, ["fc"])[:, 0]
        assert measured(part).tolist() == [True, False, True]
