"""What is new of a frame is put to what the view has, and the picture is that of the whole."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from notebook_probe.explorer.draw.increments import Increments
from tests.browser.panel_messages import (
    Message,
    heat_message,
    lines_message,
    selection_message,
)
from tests.browser.panel_page import PanelPage

ROWS = ["stem.conv1", "block.conv2", "head.fc2"]
SERIES = [("stem.conv1", "grad_norm"), ("head.fc2", "grad_norm")]
Drawn = tuple[Message, Sequence[bytes]]
Pixels = npt.NDArray[np.float32]
ROUNDING = 1.5
"""Largest difference, of 255: Chromium rounds the color of a partly covered pixel up or down."""


def frames(n_steps: int, seq: int) -> list[Drawn]:
    """Heat map and lines of a run that has come so far."""
    cells = np.random.default_rng(5).lognormal(size=(300, len(ROWS))).astype(np.float32)
    cells[40, 1] = np.nan
    steps, values = np.arange(n_steps), cells[:n_steps].T
    drawn = {name: (steps, values[k]) for name, k in zip(SERIES, (0, 2), strict=True)}
    limits = (0.1, 10.0)
    return [
        heat_message(values, ROWS, seq=seq, limits=limits),
        lines_message(drawn, seq=seq, smooth=0.9),
    ]


def pictures(panel: PanelPage) -> list[Pixels]:
    """Return what the plots show once nothing changes any more from one frame to the next."""
    panel.page.mouse.move(0, 0)
    before, now = _painted(panel), _painted(panel)
    while not are_alike(now, before):
        before, now = now, _painted(panel)
    return now


def _painted(panel: PanelPage) -> list[Pixels]:
    panel.wait_frame()
    plots = [panel.heat, panel.lines]
    urls = [plot.evaluate("(canvas) => canvas.toDataURL()") for plot in plots]
    return [_pixels(base64.b64decode(url.partition(",")[2])) for url in urls]


def _pixels(png: bytes) -> Pixels:
    """Return colors as they are seen: of a nearly transparent pixel the color is arbitrary."""
    pixels = np.array(Image.open(io.BytesIO(png)).convert("RGBA"), np.float32)
    pixels[..., :3] *= pixels[..., 3:] / 255
    return pixels


def are_alike(some: Sequence[Pixels], others: Sequence[Pixels]) -> bool:
    """Return whether all pixels agree but for the rounding of a half transparent edge."""
    pairs = zip(some, others, strict=True)
    return all(a.shape == b.shape and np.abs(a - b).max() <= ROUNDING for a, b in pairs)


def news(known: int, n_steps: int, base: int) -> list[Drawn]:
    """What a kernel sends to a view that has the frames of ``known`` steps."""
    sent: list[Drawn] = []
    pairs = zip(frames(known, seq=base), frames(n_steps, seq=base + 1), strict=True)
    for before, now in pairs:
        kept = Increments()
        kept.of("", views(before), goes_on=False)
        message, buffers = kept.of("", views(now), goes_on=True)
        assert sum(map(len, buffers)) < sum(map(len, now[1])), "it is no whole frame"
        sent.append((message, [bytes(one) for one in buffers]))
    return sent


def views(frame: Drawn) -> tuple[Message, list[memoryview]]:
    return frame[0], [memoryview(one) for one in frame[1]]


@pytest.mark.parametrize("n_steps", [201, 260])
def test_what_is_new_makes_the_picture_of_the_whole_frame(shown: PanelPage, n_steps: int) -> None:
    shown.say(selection_message(series=SERIES))
    for whole in frames(n_steps, seq=1):
        shown.draw(*whole)
    wanted = pictures(shown)
    for before in frames(200, seq=2):  # a frame is awaited by its number: each has its own
        shown.draw(*before)
    assert not are_alike(pictures(shown), wanted)
    for sent in news(200, n_steps, base=2):
        shown.draw(*sent)
    assert are_alike(pictures(shown), wanted)
    assert shown.errors == []


def test_a_view_that_has_another_frame_asks_for_all_and_keeps_its_picture(
    shown: PanelPage,
) -> None:
    shown.say(selection_message(series=SERIES))
    for before in frames(150, seq=7):
        shown.draw(*before)
    picture = pictures(shown)
    n_hellos = len(shown.sent("hello"))
    for sent in news(200, 240, base=1):
        shown.say(*sent)
        shown.say(*sent)
    assert len(shown.sent("hello")) == n_hellos + 2, "once for each plot"
    assert are_alike(pictures(shown), picture)
    assert shown.errors == []


def test_both_plots_of_a_refresh_are_acknowledged_in_one_message(shown: PanelPage) -> None:
    shown.say(selection_message(series=SERIES))
    for before in frames(100, seq=3):
        shown.draw(*before)
    shown.wait_frame()
    n_acks = len(shown.sent("ack"))
    texts = [
        (message, [base64.b64encode(one).decode() for one in buffers])
        for message, buffers in frames(120, seq=4)
    ]
    shown.page.evaluate("(frames) => frames.forEach((one) => deliver(...one))", texts)
    assert shown.wait_sent("ack", n_acks + 1)["painted"] == {"heat": 4, "lines": 4}
