"""Pixels of PNG files, the form in which trackers keep images; without an image library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["Pixels", "png_pixels", "png_size"]

Pixels = npt.NDArray[np.uint8]
"""(height, width), or (height, width, channel) in color."""

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEAD = struct.Struct(">IIBBBBB")
MOST_BYTES = 1 << 24
"""Largest size of all pixels."""
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by the type of color: gray, RGB, palette, gray and alpha, RGBA."""
PALETTE, GRAY_ALPHA = 3, 4


def png_size(data: bytes) -> tuple[int, int] | None:
    """Return height and width; None for anything but a PNG.

    Examples
    --------
    >>> png_size(b"GIF89a") is None
    True
    """
    if not data.startswith(SIGNATURE) or len(data) < len(SIGNATURE) + 8 + HEAD.size:
        return None
    width, height = struct.unpack_from(">II", data, len(SIGNATURE) + 8)
    return height, width


def png_pixels(data: bytes) -> Pixels:
    """Return the pixels of a PNG with eight bits per channel that is not interlaced.

    Raises
    ------
    ValueError
        For any other file, and for one that is damaged or too large.
    """
    if not data.startswith(SIGNATURE):
        raise ValueError("no PNG")
    head, palette, packed = b"", b"", []
    for kind, content in _chunks(data):
        if kind == b"IHDR":
            head = content
        elif kind == b"PLTE":
            palette = content
        elif kind == b"IDAT":
            packed.append(content)
    if len(head) != HEAD.size:
        raise ValueError("a PNG without a head")
    width, height, depth, color, _, _, is_interlaced = HEAD.unpack(head)
    if depth != 8 or is_interlaced or color not in CHANNELS:
        raise ValueError("a PNG of another kind than eight bits per channel, line by line")
    n = CHANNELS[color]
    if not 0 < width * height * n <= MOST_BYTES:
        raise ValueError("a PNG that is empty or too large")
    lines = _unpacked(b"".join(packed), height * (width * n + 1)).reshape(height, width * n + 1)
    pixels = _unfiltered(lines, n).reshape(height, width, n)
    if color == PALETTE:
        return _in_palette(pixels[..., 0], palette)
    return pixels[..., 0] if n == 1 or color == GRAY_ALPHA else pixels


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        end = data[at + 8 + size : at + 12 + size]
        if len(end) < 4 or struct.unpack(">I", end)[0] != zlib.crc32(kind + content):
            raise ValueError("a PNG whose checksum differs")
        yield kind, content
        at += 12 + size


def _unpacked(packed: bytes, size: int) -> Pixels:
    try:
        # One byte more than there may be: a small file can hold gigabytes.
        found = zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"a PNG that is damaged: {error}") from error
    if len(found) != size:
        raise ValueError("a PNG with another number of pixels than its head says")
    return np.frombuffer(found, np.uint8)


def _unfiltered(lines: Pixels, n: int) -> Pixels:
    """Return the bytes of each line, of which a file has the differences to those around."""
    kinds, found = lines[:, 0], lines[:, 1:].copy()
    before = np.zeros(found.shape[1], np.uint8)
    for kind, line in zip(kinds.tolist(), found, strict=True):
        if kind == 1:
            # Sums of bytes wrap, as those of the format do.
            line[:] = line.reshape(-1, n).cumsum(0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            line += before
        elif kind in (3, 4):
            line[:] = (_averaged if kind == 3 else _predicted)(line.tolist(), before.tolist(), n)
        elif kind:
            raise ValueError(f"a PNG with a line of the unknown kind {kind}")
        before = line
    return found


def _averaged(line: list[int], above: list[int], n: int) -> list[int]:
    found = [0] * n
    for value, up in zip(line, above, strict=True):
        found.append((value + (found[-n] + up) // 2) & 255)
    return found[n:]


def _predicted(line: list[int], above: list[int], n: int) -> list[int]:
    found, corner = [0] * n, [*[0] * n, *above]
    for value, up, diagonal in zip(line, above, corner, strict=False):
        left = found[-n]
        guess = left + up - diagonal
        to_left, to_up, to_corner = abs(guess - left), abs(guess - up), abs(guess - diagonal)
        if to_left <= to_up and to_left <= to_corner:
            nearest = left
        else:
            nearest = up if to_up <= to_corner else diagonal
        found.append((value + nearest) & 255)
    return found[n:]


def _in_palette(places: Pixels, palette: bytes) -> Pixels:
    colors = np.frombuffer(palette[: len(palette) // 3 * 3], np.uint8).reshape(-1, 3)
    if not len(colors) or int(places.max()) >= len(colors):
        raise ValueError("a PNG with colors that its palette has not")
    return colors[places]
