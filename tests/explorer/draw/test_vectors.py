"""Vector frames, decoded as the browser does it and compared with the rows themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.draw.vectors import Vectors
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.elements import element_labels
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.elements import Elements
from tests.explorer.fakes import FakeSource, FakeStream, FakeVectors

BINS = Axis(
    "bin",
    {
        "bin": (-4.0, -1.0, 0.0, 1.0, 4.0, math.inf),
        "bin_lo": (-math.inf, -2.0, 0.0, 0.5, 2.0, math.nan),
        "bin_hi": (-2.0, -0.5, 0.0, 2.0, math.inf, math.nan),
    },
    group="hist",
)
WIDTHS = Axis(
    "k",
    {
        "k": (-1.5, -0.5, 0.5, 1.5, math.nan, math.nan),
        "k_lo": (-2.0, -1.0, 0.0, 1.0, math.nan, math.nan),
        "k_hi": (-1.0, 0.0, 1.0, 2.0, math.nan, math.nan),
    },
    group="linear",
)
"""Four bins, what is not finite, and the width."""


class Histograms(FakeVectors):
    """Rows of vectors with values."""

    def __init__(self, modules: list[str], axis: Axis) -> None:
        super().__init__("every_1", modules, ["histogram"])
        self.axis = axis
        self._values = {"histogram": np.empty((0, len(modules), axis.size), np.float32)}

    def append(self, steps: Any, **values: Any) -> None:
        self._steps = np.concatenate([self._steps, np.asarray(steps, np.int64)])
        new = np.broadcast_to(
            np.asarray(values["histogram"], np.float32),
            (len(steps), len(self.modules), self.axis.size),
        )
        self._values["histogram"] = np.concatenate([self._values["histogram"], new])


class Ragged(FakeSource):
    """A source with vectors of every module's own length."""

    def __init__(self, *streams: FakeStream) -> None:
        super().__init__()
        self._ragged = streams

    @property
    def elements(self) -> Mapping[str, StreamView]:
        return {stream.name: stream for stream in self._ragged}


def source_of(stream: Histograms) -> FakeSource:
    source = FakeSource()
    source.given_vectors.append(stream)
    return source


def drawn(source: Any, home: str = "histogram", view: Vectors | None = None, **chosen: Any) -> Any:
    """The message, cells of each row (element, column), and its last vector."""
    frame = (view or Vectors()).frame(source, PanelSelection(home, **chosen), 700)
    assert frame is not None
    message, (halves, last, _) = frame
    cells = (np.frombuffer(halves, "<u2").astype("<u4") << 16).view("<f4")
    cells = cells.reshape(-1, message["columns"])
    ends = np.cumsum([row["n"] for row in message["rows"]])[:-1]
    return message, np.split(cells, ends), np.split(np.frombuffer(last, "<f4"), ends)


def test_each_module_is_a_row_of_elements_over_steps_in_definition_order() -> None:
    stream = Histograms(["b", "a"], BINS)
    counts = np.random.default_rng(0).integers(1, 50, (40, 2, 6)).astype(np.float32)
    stream.append(range(40), histogram=counts)
    message, cells, last = drawn(source_of(stream))
    assert [row["module"] for row in message["rows"]] == ["a", "b"]
    assert (message["first_step"], message["columns"]) == (0, 40)
    for found, end, place in zip(cells, last, (1, 0), strict=True):
        np.testing.assert_allclose(found, counts[:, place].T, rtol=2**-8)
        np.testing.assert_array_equal(end, counts[-1, place])
    assert message["keys"] == ["-4", "-1", "0", "1", "4", "inf"]
    assert message["low_edges"] == [None, -2.0, 0.0, 0.5, 2.0, None]
    assert (message["glyph"], message["colours"], message["log"]) == ("bars", "share", False)
    assert message["low"] == 0
    assert message["high"] <= 1


def test_bins_that_no_module_ever_fills_are_left_out_and_what_is_not_finite_is_a_lane() -> None:
    stream = Histograms(["a", "b"], BINS)
    counts = np.zeros((10, 2, 6), np.float32)
    counts[:, 0, 1] = 5.0
    counts[:, 1, 3] = 7.0
    stream.append(range(10), histogram=counts)
    message, cells, _ = drawn(source_of(stream))
    assert message["keys"] == ["-1", "0", "1"]
    assert message["n_lanes"] == 0
    counts[:, 0, 5] = 1.0
    stream.append(range(10, 20), histogram=counts)
    message, cells, _ = drawn(source_of(stream))
    assert message["keys"] == ["-1", "0", "1", "inf"]
    assert message["n_lanes"] == 1
    assert cells[0][3].max() == 1.0


def test_elements_at_the_end_that_no_module_ever_has_are_left_out() -> None:
    axis = Axis("bucket", {"bucket": tuple(map(float, range(50)))}, group="buckets")
    stream = Histograms(["a", "b"], axis)
    means = np.full((10, 2, 50), MEASURED_NAN)
    means[:, 0, [0, 3]] = 2.0
    means[5:, 1, 1] = 7.0
    stream.append(range(10), histogram=means)
    message, _, last = drawn(source_of(stream))
    assert message["keys"] == ["0", "1", "2", "3"]
    assert [row["n"] for row in message["rows"]] == [4, 4]
    np.testing.assert_array_equal(last[0], means[-1, 0, :4])
    np.testing.assert_array_equal(last[1], means[-1, 1, :4])
    means[:, :, :] = MEASURED_NAN
    nothing = Histograms(["a"], axis)
    nothing.append(range(2), histogram=means[:2, :1])
    assert drawn(source_of(nothing))[0]["keys"] == ["0"]


def test_a_long_run_is_thinned_to_means_and_its_last_vector_is_exact() -> None:
    stream = Histograms(["a"], BINS)
    counts = np.random.default_rng(1).integers(1, 1000, (5000, 1, 6)).astype(np.float32)
    stream.append(range(5000), histogram=counts)
    message, [cells], [last] = drawn(source_of(stream))
    columns = message["columns"]
    size = (message["last_step"] + 1 - message["first_step"]) // columns
    assert columns <= 700
    assert size > 1
    means = counts[: size * (5000 // size), 0].reshape(-1, size, 6).mean(axis=1).T
    np.testing.assert_allclose(cells[:, : means.shape[1]], means, rtol=2**-7)
    np.testing.assert_array_equal(last, counts[-1, 0])
    _, _, [inside] = drawn(source_of(stream), window=(0.0, 99.0))
    np.testing.assert_array_equal(inside, counts[99, 0])


def test_many_modules_stay_within_bytes_that_make_sense() -> None:
    stream = Histograms([f"m{k}" for k in range(60)], BINS)
    stream.append(range(2000), histogram=1.0)
    frame = Vectors().frame(source_of(stream), PanelSelection("histogram"), 700)
    assert frame is not None
    assert sum(buffer.nbytes for buffer in frame[1]) < 250_000


def test_a_zoom_reads_its_window() -> None:
    stream = Histograms(["a"], BINS)
    stream.append(range(1000), histogram=np.arange(1000.0)[:, None, None])
    message, [cells], _ = drawn(source_of(stream), window=(100.0, 149.0))
    assert (message["first_step"], message["last_step"]) == (100, 149)
    np.testing.assert_allclose(cells[0], np.arange(100, 150), rtol=2**-8)


def test_bins_that_widen_are_drawn_in_the_widest_of_their_module() -> None:
    stream, view = Histograms(["a"], WIDTHS), Vectors()
    source = source_of(stream)
    stream.append(range(4), histogram=[1.0, 2.0, 3.0, 4.0, 0.0, 0.25])
    message, [cells], _ = drawn(source, view=view)
    assert message["rows"][0]["scale"] == 0.25
    np.testing.assert_array_equal(cells[:, 0], [1, 2, 3, 4])
    stream.append(range(4, 8), histogram=[0.0, 5.0, 6.0, 1.0, 0.0, 0.5])
    message, [cells], [last] = drawn(source, view=view)
    assert message["rows"][0]["scale"] == 0.5
    assert message["keys"] == ["-0.5", "0.5", "1.5"]
    np.testing.assert_array_equal(cells[:, 0], [3, 7, 0])
    np.testing.assert_array_equal(last, [5, 6, 1])
    assert not message["has_series"], "an element is another range at every step"


def test_vectors_of_own_lengths_fill_a_row_each() -> None:
    labels = [*element_labels("a", 2), *element_labels("b", 4)]
    stream = FakeStream("every_1", labels, ["attn_head_entropy"])
    values = np.random.default_rng(2).uniform(0, 3, (30, 6)).astype(np.float32)
    values[5, 0] = np.inf
    stream.append(range(30), attn_head_entropy=values)
    message, cells, last = drawn(Ragged(stream), "attn_head_entropy")
    assert [(row["module"], row["n"]) for row in message["rows"]] == [("a", 2), ("b", 4)]
    assert (message["glyph"], message["keys"], message["low_edges"]) == ("dashes", [], [])
    np.testing.assert_allclose(cells[1], values[:, 2:].T, rtol=2**-8)
    np.testing.assert_array_equal(last[1], values[-1, 2:])
    assert np.isinf(cells[0][0, 5])


def test_a_quantity_of_numbers_has_no_vectors() -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    stream.append([0], norm=1.0)
    assert Vectors().frame(FakeSource(stream), PanelSelection("norm"), 700) is None


def test_an_element_is_drawn_as_a_line_with_its_average() -> None:
    stream = Histograms(["a", "b"], BINS)
    counts = np.random.default_rng(3).integers(1, 9, (200, 2, 6)).astype(np.float32)
    stream.append(range(200), histogram=counts)
    for x_axis in ("step", "time"):
        chosen = PanelSelection(smooth=0.9, x_axis=x_axis)
        source = source_of(stream)
        source.given.append(FakeStream("every_1", ["a"], ["norm"]))
        source.given[0].append(range(200), norm=1.0)
        frame = Lines().frame(source, chosen.with_series(("b", "histogram[-1]")), 700)
        [head] = frame[0]["series"]
        numbers = np.frombuffer(frame[1][0], "<f4")
        assert (head["n"], head["quantity"]) == (200, "histogram[-1]")
        assert head["n_average"] > 0
        np.testing.assert_array_equal(numbers[200:400], counts[:, 1, 1])
        assert np.isfinite(numbers[:200]).all()


def test_columns_of_a_vector_stream_are_its_elements() -> None:
    stream = Histograms(["a", "b"], BINS)
    counts = np.arange(24.0).reshape(2, 2, 6)
    stream.append(range(2), histogram=counts)
    elements = Elements(stream)
    assert elements.modules[6] == "b[0/6]"
    np.testing.assert_array_equal(elements.values("histogram"), counts.reshape(2, 12))
    some = elements.values("histogram", 1, 2, ["b[3/6]", "a[0/6]"])
    np.testing.assert_array_equal(some, [[21.0, 12.0]])
