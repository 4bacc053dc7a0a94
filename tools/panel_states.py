"""Pictures of every state of the panel: ``python -m tools.panel_states [STATE ...]``.

Each state of ``tests/browser/panel_states.py`` is drawn at three widths, light and dark, into
``build/panel_states/THEME/STATE-WIDTH.png``; ``build/panel_states/THEME.png`` is a contact sheet, a
row for each state. Look at both sheets after a change of the panel's style.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import expect, sync_playwright

from notebook_probe.errors import UnknownNameError, near
from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
from tests.browser.lab import PATIENCE_S, ROOT
from tests.browser.panel_page import PanelPage, one_page
from tests.browser.panel_states import STATES

__all__ = ["contact_sheet", "main", "take_pictures"]

FOLDER = ROOT / "build" / "panel_states"
WIDTHS = (700, 1100, 1600)
GROUNDS = {"light": "#ffffff", "dark": "#111111"}
SCALE = 0.5
"""Size of a picture in a contact sheet."""
GAP = 16
LABEL = 14
"""Height of the line with the name of a state, in pixels."""


def main(names: Sequence[str]) -> None:
    """Draw the states, all or those that are named, and the contact sheets.

    Raises
    ------
    UnknownNameError
        There is no state of this name; the message lists the close ones.
    """
    for name in names:
        if name not in STATES:
            raise UnknownNameError(f"no state {name!r}; {near(name, STATES)}")
    states = names or [*STATES]
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(playwright), args=CHROMIUM_FLAGS
        )
        for panel in one_page(browser):
            for state in states:
                take_pictures(panel, state, FOLDER)
        browser.close()
    for theme, ground in GROUNDS.items():
        rows = {one: [picture_of(FOLDER, theme, one, width) for width in WIDTHS] for one in states}
        contact_sheet(rows, ground).save(FOLDER / f"{theme}.png")
        print(f"{(FOLDER / f'{theme}.png').relative_to(ROOT)}: {len(states)} states")


def picture_of(folder: Path, theme: str, state: str, width: int) -> Path:
    """Return the path of one picture."""
    return folder / theme / f"{state}-{width}.png"


def take_pictures(panel: PanelPage, state: str, folder: Path) -> None:
    """Draw one state at each width, in each theme."""
    for width in WIDTHS:
        STATES[state](panel, width)
        for theme in GROUNDS:
            panel.dress(theme)
            path = picture_of(folder, theme, state, width)
            path.parent.mkdir(parents=True, exist_ok=True)
            # The page around the panel, too: a list or a dialog may extend beyond it.
            panel.page.screenshot(path=path, full_page=True)


def contact_sheet(rows: dict[str, list[Path]], ground: str) -> Image.Image:
    """Return one picture with a row of pictures for each state, under its name."""
    small = {name: [_small(path) for path in paths] for name, paths in rows.items()}
    heights = {name: max(one.height for one in row) for name, row in small.items()}
    widths = [max(row[k].width for row in small.values()) for k in range(len(WIDTHS))]
    size = sum(widths) + GAP * (len(widths) + 1), sum(heights.values()) + (GAP + LABEL) * len(small)
    sheet = Image.new("RGB", size, ground)
    pen, y = ImageDraw.Draw(sheet), 0
    for name, row in small.items():
        pen.text((GAP, y), name, fill="#808080")
        x = GAP
        for width, picture in zip(widths, row, strict=True):
            sheet.paste(picture, (x, y + LABEL))
            x += width + GAP
        y += heights[name] + GAP + LABEL
    return sheet


def _small(path: Path) -> Image.Image:
    with Image.open(path) as picture:
        size = round(SCALE * picture.width), round(SCALE * picture.height)
        return picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main(sys.argv[1:])
