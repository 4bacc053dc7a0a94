"""Titles of long names: every letter is inside of the picture, and none on another."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from notebook_probe.figures import heat, overview, ratio
from notebook_probe.figures.labels import MOST_LINES, title_lines
from tests.compare.made import Made
from tests.explorer.fakes import FakeStream

LONG = "a_quantity_of_my_own_" + "with_a_very_long_name_" * 7
NAME = "digits-cnn-with-batchnorm-lr0.001-wd0.1-2026-11-30-" * 2


def run(name: str, quantity: str) -> Made:
    stream = FakeStream("every_1", ["block.0.attention", "head"], [quantity])
    values = np.random.default_rng(0).uniform(1, 2, (20, 2)).astype(np.float32)
    stream.append(range(20), **{quantity: values})
    return Made(name, [stream], ["block.0.attention", "head"])


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = [one for one in figure.findobj(Text) if one.get_text() and one.get_visible()]
    return [(one.get_text(), one.get_window_extent(renderer)) for one in texts]


@pytest.mark.slow
@pytest.mark.parametrize("picture", ["heat", "overview", "ratio"])
@pytest.mark.parametrize(
    ("name", "quantity"),
    [("a", LONG), (NAME, LONG), (NAME, "norm")],
    ids=["quantity", "both", "name"],
)
def test_a_long_title_is_inside_of_the_picture(picture: str, name: str, quantity: str) -> None:
    one, other = run(f"{name}0", quantity), run(f"{name}1", quantity)
    draw = {
        "heat": lambda: heat(one, quantity),
        "overview": lambda: overview(one, quantity),
        "ratio": lambda: ratio(one, other, quantity),
    }
    figure = draw[picture]()
    found = boxes(figure)
    for text, box in found:
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    titles = [box for text, box in found if text[:5] in (LONG + NAME) or text.startswith("norm")]
    for first, second in combinations(titles, 2):
        assert not first.overlaps(second)
    shown = "".join(text for text, _ in found).replace("\n", "")
    assert LONG in shown or quantity != LONG


def test_a_title_that_has_room_is_one_line_at_its_old_height() -> None:
    short, long = run("a", "norm"), run("a", LONG)
    assert heat(short, "norm").get_figheight() < heat(long, LONG).get_figheight()
    assert title_lines("norm of a", 3.0) == ["norm of a"]


@pytest.mark.parametrize(
    "text", ["x" * 3000, "word " * 800, "a.b" * 900], ids=["x", "words", "path"]
)
def test_a_title_has_a_limit(text: str) -> None:
    lines = title_lines(text, 2.0)
    assert len(lines) == MOST_LINES
    assert lines[-1].endswith("…")


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_title_is_one_empty_line(text: str) -> None:
    assert title_lines(text, 2.0) == [""]
