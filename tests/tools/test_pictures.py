"""Small pictures: lines and maps on axes with round ticks."""

from __future__ import annotations

import base64
import io
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tools.pictures.scale import scale
from tools.pictures.svg import lines, map_of

SVG = "{http://www.w3.org/2000/svg}"


def polylines(text: str) -> list[str]:
    """The paths of a picture's series, which alone have round ends."""
    paths = ElementTree.fromstring(text).iter(f"{SVG}path")
    return [path.get("d", "") for path in paths if path.get("stroke-linecap")]


def texts(text: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_a_line_goes_from_end_to_end_and_is_lifted_where_nothing_is() -> None:
    x, y = np.arange(5.0), np.array([0.0, 1.0, np.nan, 1.0, 2.0])
    (path,) = polylines(lines({"fc": (x, y)}, "step"))
    assert path == "M62 168.0h0L164 104.0M366 104.0h0L468 40.0"


def test_positive_values_of_many_decades_are_on_a_log_axis() -> None:
    text = lines({"fc": (np.arange(3.0), np.array([1e-4, 1e-2, 1.0]))}, "step")
    assert polylines(text) == ["M62 168.0h0L265 104.0L468 40.0"]
    assert {"1e-4", "0.001", "0.01", "0.1", "1"} <= set(texts(text))


def test_a_constant_is_drawn_in_the_middle() -> None:
    text = lines({"fc": (np.arange(2.0), np.zeros(2))}, "step")
    assert polylines(text) == ["M62 104.0h0L468 104.0"]


def test_a_mark_and_an_event_are_told_and_the_mark_is_in_the_picture() -> None:
    series = {"fc": (np.arange(10.0), np.arange(10.0))}
    text = lines(series, "step", marks={"2 / lr": 40.0}, events={"rate x 40": 5})
    assert {"2 / lr", "rate x 40", "40"} <= set(texts(text))


def test_a_name_cannot_break_the_picture() -> None:
    name = "<script>&"
    text = lines({name: (np.arange(2.0), np.arange(2.0))}, name, name, marks={name: 1.0})
    assert "<script>" not in text
    assert texts(text).count(name) == 4


def test_a_map_has_its_lowest_row_at_the_bottom_and_white_where_nothing_is() -> None:
    values = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, np.nan]])
    text = map_of(values, np.arange(3.0), np.arange(2.0), "step", "channel", "count")
    (found,) = re.findall(r"base64,([^\"]+)", text)
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(found))).convert("RGB"))
    assert image.shape == (2, 3, 3)
    assert (image[0, 2] == 255).all()
    assert image[0, 0].sum() > image[1, 0].sum()  # viridis: high is bright
    assert "count 0 to 1" in texts(text)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.0, 160.0], ["0", "50", "100", "150"]),
        ([0.0, 1.0], ["0", "0.5", "1"]),
        ([-0.3, 0.9], ["0", "0.5"]),
        ([5.0], ["4", "6"]),
        ([5.3e8, 5.35e8], ["530M", "532M", "534M"]),
    ],
)
def test_ticks_are_round(values: list[float], told: list[str]) -> None:
    assert [name for _, name in scale(np.array(values), 0, 100).ticks()] == told


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from([None, False]),
    st.booleans(),
)
def test_every_value_lies_on_the_axis_and_there_are_few_ticks(
    values: list[float], log: bool | None, whole: bool
) -> None:
    axis = scale(np.array(values), 10, 110, log=log, whole=whole)
    pixels = axis.of(np.array(values))
    assert ((pixels > 9.999) & (pixels < 110.001)).all()
    assert len(axis.ticks()) <= 8
    assert all(math.isfinite(place) for place, _ in axis.ticks())
