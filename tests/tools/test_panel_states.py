"""Contact sheets of the panel: a row for each state, none of its pictures cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from notebook_probe.errors import UnknownNameError
from tools.panel_states import GAP, LABEL, contact_sheet, main

HEIGHTS = {"costs": (40, 60, 20), "knobs": (80, 80, 80)}


def test_each_state_has_a_row_of_half_size_with_room_for_its_highest_picture(
    tmp_path: Path,
) -> None:
    rows: dict[str, list[Path]] = {}
    for state, heights in HEIGHTS.items():
        rows[state] = [tmp_path / f"{state}-{k}.png" for k in range(3)]
        for path, height in zip(rows[state], heights, strict=True):
            Image.new("RGB", (100, height), "#ff0000").save(path)
    sheet = contact_sheet(rows, "#ffffff")
    assert sheet.size == (3 * 50 + 4 * GAP, 30 + 40 + 2 * (GAP + LABEL))
    below = 30 + GAP + LABEL
    for k in range(3):
        x = GAP + k * (50 + GAP)
        assert sheet.getpixel((x, LABEL)) == (255, 0, 0)
        assert sheet.getpixel((x + 49, below + LABEL + 39)) == (255, 0, 0)


def test_an_unknown_state_is_refused_with_close_names() -> None:
    with pytest.raises(UnknownNameError, match="no state 'cost'; close: 'costs'"):
        main(["cost"])
