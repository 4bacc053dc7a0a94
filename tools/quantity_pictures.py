"""Draw docs/quantities/pictures: each quantity in a short training that shows what it tells.

Run it from the checkout: ``python -m tools.quantity_pictures``; it takes about two minutes. With
names of scenes (`tools.pictures.scenes`) only their pictures are made again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from notebook_probe.quantities.table import built_in
from tools.pictures.draw import picture
from tools.pictures.scene import play
from tools.pictures.scenes import SCENES, UNSEEN, scene_of
from tools.quantity_pages import PICTURES, ROOT


def main(names: list[str]) -> None:
    """Play the scenes, draw what was recorded, and say what was not."""
    folder = ROOT / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    known = {quantity.name for quantity in built_in()} - {*UNSEEN}
    for old in folder.glob("*.svg"):
        if old.stem not in known:
            old.unlink()
    for name in names or SCENES:
        _draw(name, folder)


def _draw(name: str, folder: Path) -> None:
    seen = (quantity for quantity in built_in() if quantity.name not in UNSEEN)
    quantities = [quantity for quantity in seen if scene_of(quantity.name) == name]
    with tempfile.TemporaryDirectory() as temporary:
        run = play(SCENES[name], quantities, Path(temporary) / "run.zarr")
        drawn = {quantity.name: picture(run, quantity, SCENES[name]) for quantity in quantities}
    for quantity, text in drawn.items():
        (folder / f"{quantity}.svg").write_text(text, "utf-8")
    missing = [quantity for quantity, text in drawn.items() if not text]
    print(f"{name}: {len(drawn)} pictures; nothing was measured of: {', '.join(missing) or '-'}")


if __name__ == "__main__":
    main(sys.argv[1:])
