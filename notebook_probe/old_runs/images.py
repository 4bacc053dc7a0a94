"""Collection of a run's images while a reader reads its files, and their pixels later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from notebook_probe.old_runs.png import Pixels, png_pixels, png_size
from notebook_probe.record.format.source import Steps

__all__ = ["ImagePoints", "OldImages", "decoded_images"]

LARGEST_STEP = 2**62
MOST_NAMES = 100
MOST_BYTES = 64 << 20
"""Size of all images of a run, as they are stored."""
MOST_ELEMENTS = 1 << 20
"""Largest number of elements of an image, as of `Run.log_array`; a larger one is thinned."""
MOST_OF_RUN = 1 << 23
"""Largest number of elements of all images of a run."""


@dataclass(frozen=True, slots=True)
class OldImages:
    """Images that were logged under one name, as they are stored.

    Attributes
    ----------
    quantity : str
        Quantity under which a record has the images, at the whole model.
    name : str
        Name as the tool has it.
    steps, times_ms : int64 array
        Same as in `OldSeries`.
    encoded : tuple of bytes
        A PNG of each step.
    """

    quantity: str
    name: str
    steps: Steps
    times_ms: Steps
    encoded: tuple[bytes, ...]


class ImagePoints:
    """Images by name; of a step the last one counts.

    Attributes
    ----------
    n_odd : int
        Images that are left out: no PNG, damaged, or too many.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[int, tuple[int, bytes]]] = {}
        self._n_bytes = self.n_odd = 0

    def add(self, name: str, step: int, time_ms: float, encoded: bytes) -> None:
        """Add one image."""
        is_known = name in self._found or len(self._found) < MOST_NAMES
        has_room = self._n_bytes + len(encoded) <= MOST_BYTES
        is_sound = png_size(encoded) is not None and 0 <= step < LARGEST_STEP
        if not (is_sound and has_room and is_known):
            self.n_odd += 1
            return
        self._n_bytes += len(encoded)
        self._found.setdefault(name, {})[step] = int(time_ms), encoded

    def series(self) -> tuple[OldImages, ...]:
        """Return the images by name, with growing steps."""
        taken: dict[str, str] = {}
        for name in self._found:
            word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:100] or "unnamed"
            plain, n = f"logged_{word}_image", 1
            quantity = plain
            while quantity in taken:
                n += 1
                quantity = f"{plain}_{n}"
            taken[quantity] = name
        return tuple(self._of(quantity, name) for quantity, name in taken.items())

    def _of(self, quantity: str, name: str) -> OldImages:
        rows = dict(sorted(self._found[name].items()))
        steps = np.array([*rows], np.int64)
        times = np.array([time_ms for time_ms, _ in rows.values()], np.int64)
        return OldImages(quantity, name, steps, times, tuple(one for _, one in rows.values()))


def decoded_images(
    every: tuple[OldImages, ...],
) -> tuple[list[tuple[OldImages, dict[int, Pixels]]], int]:
    """Return the pixels by row of each series, of one shape, and the number of images left out.

    A large image is thinned to every second pixel, every third, and so on.
    """
    found, n_left_out, n_elements = [], 0, 0
    for images in every:
        rows: dict[int, Pixels] = {}
        for row, pixels in _readable(images):
            shape = next(iter(rows.values())).shape if rows else pixels.shape
            if pixels.shape == shape and n_elements + pixels.size <= MOST_OF_RUN:
                rows[row] = pixels
                n_elements += pixels.size
        n_left_out += len(images.encoded) - len(rows)
        if rows:
            found.append((images, rows))
    return found, n_left_out


def _readable(images: OldImages) -> Iterator[tuple[int, Pixels]]:
    for row, encoded in enumerate(images.encoded):
        try:
            pixels = png_pixels(encoded)
        except ValueError:
            continue
        every = 1
        while pixels[::every, ::every].size > MOST_ELEMENTS:
            every += 1
        yield row, pixels[::every, ::every]
