"""Figures as pictures of their place."""

from __future__ import annotations

import struct
import subprocess
import sys
from io import BytesIO

import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.image import imread

from notebook_probe.explorer.draw.rendered import png
from notebook_probe.explorer.draw.returned import frame_of


def tall() -> Figure:
    figure = Figure(figsize=(2, 4), dpi=31)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow([[0, 1]], aspect="auto")
    axes.axis("off")
    return figure


@pytest.mark.parametrize(("width", "ratio"), [(300, 1.0), (501, 2.0), (300, 1.5)])
def test_a_figure_is_as_wide_as_its_place_in_its_own_ratio(width: int, ratio: float) -> None:
    content, height = png(tall(), width, ratio)
    assert height == 2 * width
    pixels = imread(BytesIO(content), format="png")
    assert pixels.shape[:2] == (round(height * ratio), round(width * ratio))
    assert (pixels[:, 0] != pixels[:, -1]).any(), "something is drawn from edge to edge"


def test_a_figure_is_given_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pyplot.rcParams, "savefig.bbox", "tight")
    figure = tall()
    contents = {png(figure, 300)[0] for _ in range(2)}
    assert len(contents) == 1
    [content] = contents
    assert struct.unpack(">II", content[16:24]) == (300, 600)  # of the IHDR chunk
    assert (*figure.get_size_inches(), figure.get_dpi()) == (2, 4, 31)


def test_texts_are_as_large_in_a_wide_place_as_in_a_narrow_one() -> None:
    def ink(width: int) -> int:
        figure = Figure(figsize=(4, 1))
        figure.text(0.1, 0.4, "gradient norm")
        return int((imread(BytesIO(png(figure, width)[0]), format="png")[..., 0] < 0.5).sum())

    assert ink(400) == pytest.approx(ink(900), rel=0.1)


def test_a_figure_of_pyplot_works_and_is_not_kept_open() -> None:
    before = pyplot.get_fignums()
    figure, _ = pyplot.subplots()
    assert frame_of(figure, "x", "", 300, 1.0)[0]["form"] == "image"
    assert pyplot.get_fignums() == before


@pytest.mark.slow
def test_drawing_does_not_load_pyplot() -> None:
    code = (
        "import sys; from matplotlib.figure import Figure\n"
        "from notebook_probe.explorer.draw.rendered import png\n"
        "png(Figure(), 300); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
