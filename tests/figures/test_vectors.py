"""Pictures of the vectors of all modules: cells, the vector at a step, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure

from notebook_probe.errors import UnknownNameError
from notebook_probe.figures import vectors
from notebook_probe.figures.style import BRAND, encoded
from tests.explorer.draw.test_vectors import BINS, Histograms, Ragged, source_of
from tests.explorer.fakes import FakeSource, FakeStream


@pytest.fixture
def histogram_source() -> FakeSource:
    """Two modules, ten steps, of one of which nothing is finite in step 7 and later."""
    counts = np.zeros((10, 2, 6))
    counts[:, 0, 1:4] = [10, 20, 10]
    counts[:, 1, 2] = np.arange(1, 11)
    counts[:, 1, 3] = 5
    counts[7:, 1, 5] = 4
    stream = Histograms(["a", "b"], BINS)
    stream.append(range(10), histogram=counts)
    return source_of(stream)


def cells(figure: Figure, picture: int) -> np.ndarray:
    """A row for each element, the lowest last."""
    image: Any = figure.axes[0].images[picture]
    return np.ma.filled(image.get_array().astype(float), np.nan)


def bars(figure: Figure) -> list[tuple[float, float]]:
    """Middle and length of each bar of the vectors beside the pictures."""
    patches: Any = figure.axes[1].patches
    return [(one.get_y() + one.get_height() / 2, one.get_width()) for one in patches]


def words(figure: Figure, axes: int) -> list[str]:
    return [text.get_text() for text in figure.axes[axes].texts]


def test_histograms_are_shares_of_their_step_with_larger_elements_above(
    histogram_source: FakeSource,
) -> None:
    figure = vectors(histogram_source, "histogram")
    first, second = cells(figure, 0), cells(figure, 1)
    # of -1, 0, 1 and what is not finite; the bins that no module fills are left out
    np.testing.assert_allclose(first[:, 3], [0, 0.25, 0.5, 0.25])
    counts = np.array([4.0, 5.0, 8.0, 0.0])
    np.testing.assert_allclose(second[:, 7], counts / counts.sum())
    assert to_hex(figure.axes[0].images[0].get_cmap()(0.0)) == "#ffffff"
    assert figure.axes[0].get_title(loc="left") == "histogram"
    assert figure.axes[2].get_xlabel() == "share of elements"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert encoded(figure, "png")


@pytest.mark.parametrize("step", [None, 4])
def test_the_vector_at_a_step_stands_beside_each_picture(
    histogram_source: FakeSource, step: int | None
) -> None:
    figure = vectors(histogram_source, "histogram", step=step)
    lengths = np.array([length for _, length in bars(figure)]).reshape(2, -1)
    at = 9 if step is None else step
    counts = np.array([4.0 if at >= 7 else 0.0, 5, at + 1, 0])
    np.testing.assert_allclose(lengths[0], [0, 0.5, 1, 0.5])
    np.testing.assert_allclose(lengths[1], counts / counts.max())
    title = figure.axes[1].get_title(loc="left")
    assert title == ("last step" if step is None else "step 4")
    assert len(figure.axes[0].lines) == (step is not None)


def test_an_enlarged_module_is_tall_and_its_elements_have_names(
    histogram_source: FakeSource,
) -> None:
    figure = vectors(histogram_source, "histogram", enlarged="b")
    first, second = (image.get_extent() for image in figure.axes[0].images)
    assert second[2] - second[3] > 5 * (first[2] - first[3])
    assert words(figure, 1) == ["-1", "0", "1", "not finite"]
    colours = {label.get_text(): label.get_color() for label in figure.axes[0].get_yticklabels()}
    assert colours["b"] == BRAND != colours["a"]


def test_modules_of_other_lengths_fill_their_rows_on_one_logarithmic_scale() -> None:
    labels = [f"a[{k}/2]" for k in range(2)] + [f"b[{k}/3]" for k in range(3)]
    values = np.tile([8.0, 2.0, 4.0, 1.0, 0.5], (6, 1))
    values[2, 3] = np.inf
    stream = FakeStream("every_1", labels, ["eigs"])
    stream.append(range(6), eigs=values)
    figure = vectors(Ragged(stream), "eigs", enlarged="b")
    assert cells(figure, 0)[:, 0].tolist() == [8, 2], "numbered elements stand as they are read"
    assert cells(figure, 1)[:, 0].tolist() == [4, 1, 0.5]
    assert isinstance(figure.axes[0].images[0].norm, LogNorm)
    assert words(figure, 1) == ["2", "1", "0"]
    image: Any = figure.axes[0].images[2]
    lost = image.get_array()
    assert [*zip(*(~np.ma.getmaskarray(lost)).nonzero(), strict=True)] == [(1, 2)]


@pytest.mark.slow
def test_sixty_modules_stand_in_one_picture() -> None:
    names = [f"m{k}" for k in range(60)]
    stream = Histograms(names, BINS)
    stream.append(range(4), histogram=[0, 1, 2, 1, 0, 0])
    figure = vectors(source_of(stream), "histogram", enlarged="m30")
    assert figure.get_size_inches()[1] < 13
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert "m30" in shown
    assert len(shown) > 30


def test_what_is_not_there_is_refused_in_words(histogram_source: FakeSource) -> None:
    with pytest.raises(UnknownNameError, match=r"no vector of 'histogramm' .* close: 'histogram'"):
        vectors(histogram_source, "histogramm")
    with pytest.raises(UnknownNameError, match="no histogram of 'c' is there"):
        vectors(histogram_source, "histogram", enlarged="c")
    with pytest.raises(ValueError, match="step=10: shown are 0 to 9"):
        vectors(histogram_source, "histogram", step=10)
