"""Images in TensorBoard's events, in both of the forms in which it stores them."""

from __future__ import annotations

from notebook_probe.old_runs.formats.protobuf import fields

__all__ = ["image_of", "images_of"]

ENCODED = 4
"""Field of an `Image`."""
STRINGS, MOST_IMAGES = 8, 16


def image_of(message: bytes) -> bytes:
    """Return the file of an `Image`; empty without one.

    Examples
    --------
    >>> image_of(bytes([0x08, 2, 0x22, 3]) + b"png")
    b'png'
    """
    found = (one for number, _, one in fields(message) if number == ENCODED)
    return next((one for one in found if isinstance(one, bytes)), b"")


def images_of(tensor: bytes) -> list[bytes]:
    """Return the files of a tensor of texts, which begins with width and height."""
    found = [one for number, _, one in fields(tensor) if number == STRINGS]
    return [one for one in found[2 : 2 + MOST_IMAGES] if isinstance(one, bytes)]
