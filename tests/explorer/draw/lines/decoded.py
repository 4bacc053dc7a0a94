"""Line frames, decoded as the browser does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source
from tests.explorer.fakes import FakeSource, FakeStream

A, B = ("a", "norm"), ("b", "norm")
Points = tuple[np.ndarray, np.ndarray]


def source_of(values: Any, steps: Any = None, ms_per_step: int = 100) -> FakeSource:
    values = np.atleast_2d(np.asarray(values, np.float32).T).T
    stream = FakeStream("every_1", ["a", "b"][: values.shape[1]], ["norm"], ms_per_step)
    stream.append(range(len(values)) if steps is None else steps, norm=values)
    return FakeSource(stream)


def drawn(
    view: Lines, source: Source, selection: PanelSelection, width: int = 700
) -> tuple[dict[str, Any], list[Points]]:
    """The message, and absolute x and y of each series."""
    message, lines, _ = drawn_whole(view, source, selection, width)
    return message, lines


def drawn_whole(
    view: Lines, source: Source, selection: PanelSelection, width: int = 700
) -> tuple[dict[str, Any], list[Points], list[Points]]:
    """The message, and absolute x and y of each series and of its average."""
    message, buffers = view.frame(source, selection, width)
    numbers = np.frombuffer(buffers[0], "<f4")
    lines: list[Points] = []
    averages: list[Points] = []
    end = 0
    for one in message["series"]:
        assert one["offset"] == end
        for n, found in ((one["n"], lines), (one["n_average"], averages)):
            x, y = numbers[end : end + n], numbers[end + n : end + 2 * n]
            found.append((x + np.float64(message["x0"]), y))
            end += 2 * n
    assert end == len(numbers)
    return dict(message), lines, averages
