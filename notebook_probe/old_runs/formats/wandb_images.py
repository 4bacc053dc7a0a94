"""Images of W&B, which are files next to the log that names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["IMAGES", "images_of"]

IMAGES = ("image-file", "images/separated")
"""Types of a value of the history: one image, or a list of them."""
MOST_IMAGES, MOST_BYTES = 16, 8 << 20


def images_of(value: Mapping[str, Any], folder: Path) -> list[bytes]:
    """Return the files of the images of a value, below a folder; empty for a missing value.

    A name that leads out of the folder is not followed.
    """
    names = value.get("filenames", [value.get("path")])
    texts = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return [_content(folder, one) for one in texts[:MOST_IMAGES]]


def _content(folder: Path, name: str) -> bytes:
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return b""
        with path.open("rb") as file:
            found = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return b""
    return found if len(found) <= MOST_BYTES else b""
