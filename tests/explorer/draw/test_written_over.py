"""Views of a run into whose passed steps something is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.figures import lines
from notebook_probe.record import RecordWriter
from tests.record.build import GRAD, fill, new_writer

SERIES = ("fc", "grad_norm")
N_STEPS = 20
SELECTION = PanelSelection(home="grad_norm", smooth=0.0).with_series(SERIES)


@pytest.fixture
def long_writer(tmp_path: Path) -> Iterator[RecordWriter]:
    with new_writer(tmp_path) as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", "fc"], [GRAD])
        fill(stream, range(N_STEPS))
        yield writer


def points(view: Lines, writer: RecordWriter) -> dict[float, list[float]]:
    """The values drawn at each step."""
    message, (buffer,) = view.frame(writer.source, SELECTION, 700)
    (head,) = message["series"]
    numbers: Any = np.frombuffer(buffer, "<f4").reshape(2, head["n"])
    drawn: dict[float, list[float]] = {}
    for step, value in numbers.T.tolist():
        drawn.setdefault(step, []).append(value)
    return drawn


def test_a_line_that_was_drawn_already_goes_through_the_new_value_only(
    long_writer: RecordWriter,
) -> None:
    view, expected = Lines(), {float(step): [100.0 + step] for step in range(N_STEPS)}
    assert points(view, long_writer) == expected
    long_writer.backfill(*SERIES, [4, 6], [-4.0, -6.0])
    assert points(view, long_writer) == expected | {4.0: [-4.0], 6.0: [-6.0]}
    long_writer.backfill(*SERIES, 6, -7.0)
    assert points(view, long_writer) == expected | {4.0: [-4.0], 6.0: [-7.0]}


def test_an_average_that_was_drawn_already_is_taken_of_the_new_value(
    long_writer: RecordWriter,
) -> None:
    view = Lines()

    def averages() -> Any:
        message, (buffer,) = view.frame(
            long_writer.source, replace(SELECTION, smooth=0.4, log_y=False), 700
        )
        return np.frombuffer(buffer, "<f4")[-message["series"][0]["n_average"] :]

    assert averages()[:2] == pytest.approx([100.0, (0.4 * 100 + 101) / 1.4])
    long_writer.backfill(*SERIES, 0, -50.0)
    assert averages()[:2] == pytest.approx([-50.0, (0.4 * -50 + 101) / 1.4])


def test_a_cell_of_the_heat_map_is_the_new_value_and_no_mean_of_both(
    long_writer: RecordWriter,
) -> None:
    view = Heat()

    def cells() -> Any:
        frame = view.frame(long_writer.source, SELECTION, 700)
        assert frame is not None
        message, buffers = frame
        rows = message["rows"]
        return np.frombuffer(buffers[0], "<f4").reshape(len(rows), -1)[rows.index("fc")]

    np.testing.assert_array_equal(cells(), 100 + np.arange(N_STEPS))
    long_writer.backfill(*SERIES, 4, -4.0)
    assert (cells()[4], cells()[5]) == (-4.0, 105.0)


def test_a_picture_has_one_point_at_each_step(long_writer: RecordWriter) -> None:
    long_writer.backfill(*SERIES, [4, 6], [1000.0, 2000.0])
    (line, *_) = lines(long_writer.source, [SERIES]).axes[0].lines
    expected = 100.0 + np.arange(N_STEPS)
    expected[[4, 6]] = 1000, 2000
    np.testing.assert_array_equal(line.get_xdata(), np.arange(N_STEPS))
    np.testing.assert_array_equal(line.get_ydata(), expected)
