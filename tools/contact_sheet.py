"""Run the broken trainings, and keep a picture of each: ``python -m tools.contact_sheet [NAME]``.

Of each notebook in notebooks/broken the last figure of the cell ``picture`` becomes
docs/broken/NAME.png, and docs/broken/index.md is written, with the first sentence below its title.
Names leave the other pictures as they are.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks" / "broken"
FOLDER = ROOT / "docs" / "broken"
INDEX = FOLDER / "index.md"
LIMIT_S = 300
WIDTH = 900
COLOURS = 128
"""Of a plot that many are enough, and a fifth of the bytes."""

HEAD = """---
hide: [navigation, toc]
description: Trainings that fail, each with its symptom, its alert, its fix, and the healthy twin.
---

# Broken trainings

<!-- written by `python -m tools.contact_sheet` -->

Each is a notebook that runs in less than two minutes: the symptom, the panel and the alert that
explain it, the fix, and the same plot of the broken and the healthy training.

"""


def main(names: list[str]) -> None:
    """Renew the pictures, all or those that are named, and the page."""
    FOLDER.mkdir(exist_ok=True)
    for path in notebooks():
        if not names or path.stem in names:
            (FOLDER / f"{path.stem}.png").write_bytes(small(figure(path)))
            print(f"{path.stem}: {(FOLDER / f'{path.stem}.png').stat().st_size / 1e3:.0f} kB")
    INDEX.write_text(page(), "utf-8")


def notebooks() -> list[Path]:
    """The broken trainings, by name."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def page() -> str:
    """The contact sheet: a picture, a title and a sentence for each notebook that has a picture."""
    shown = [path for path in notebooks() if (FOLDER / f"{path.stem}.png").exists()]
    return HEAD + '<div class="sheet" markdown>\n\n' + "\n".join(map(_card, shown)) + "\n</div>\n"


def words(path: Path) -> tuple[str, str]:
    """The title of a notebook, and the line below it."""
    cells = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    title, sentence = [line for line in cells["title"].splitlines() if line][:2]
    return title.removeprefix("# "), sentence


def figure(path: Path) -> bytes:
    """Run a copy of the notebook, and take the last picture of the cell that is called so."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        client = NotebookClient(notebook, timeout=LIMIT_S, resources={"metadata": {"path": folder}})
        client.execute(env={**os.environ, "OMP_NUM_THREADS": "1"})
    [cell] = [cell for cell in notebook.cells if cell.id == "picture"]
    pictures = [each.get("data", {}).get("image/png") for each in cell.outputs]
    return b64decode([picture for picture in pictures if picture][-1])


def small(png: bytes) -> bytes:
    """The picture no wider than it is shown, in few colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH))
    held = io.BytesIO()
    picture.quantize(COLOURS).save(held, "PNG", optimize=True)
    return held.getvalue()


def _card(path: Path) -> str:
    title, sentence = words(path)
    notebook = f"../../notebooks/broken/{path.name}"
    picture = f"[![{title}, broken and healthy]({path.stem}.png)]({notebook})"
    words_below = f"{sentence} [The notebook]({notebook})"
    return f"<div markdown>\n\n## {title}\n\n{picture}\n\n{words_below}\n\n</div>\n"


if __name__ == "__main__":
    main(sys.argv[1:])
