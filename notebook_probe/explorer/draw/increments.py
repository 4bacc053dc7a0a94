"""Parts of a frame that are new to views which have painted the frame before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.explorer.messages.frames import Frame, Layout

__all__ = ["Increments"]

ALWAYS = {"v", "type", "seq"}
"""Fields that every message has."""


class Increments:
    """Keep the last frame of each kind, and remove from the next one what has not changed.

    A run grows at its end, so the front of every row of numbers mostly stays the same. Bytes are
    compared, so a view that puts the removed part back has exactly the frame that was drawn.
    """

    def __init__(self) -> None:
        self._last: dict[str, Frame] = {}

    def forget(self) -> None:
        """Send whole frames next: a new view has none."""
        self._last.clear()

    def of(self, kind: str, frame: Frame, goes_on: bool) -> Frame:
        """Return the frame, or only what is new in it, with ``base`` and ``kept``.

        Parameters
        ----------
        frame : Frame
            Frame whose message has its ``seq``; a frame without ``layout`` is returned unchanged.
        goes_on : bool
            The views have the last frame of this kind.
        """
        if "layout" not in frame[0]:
            return frame
        # Only when the views have painted the frame before: bytes are relative to it.
        before = self._last.get(kind) if goes_on else None
        self._last[kind] = frame
        return frame if before is None else _news(frame, before)


def _news(frame: Frame, before: Frame) -> Frame:
    (message, buffers), (old_message, old_buffers) = frame, before
    kept: list[list[int]] = []
    tails: list[bytes] = []
    for place, (groups, buffer) in enumerate(zip(message["layout"], buffers, strict=True)):
        known = _groups(old_message["layout"], old_buffers, place)
        kept.append([])
        for number, rows in enumerate(_rows(groups, buffer)):
            front = _shared(rows, known[number]) if number < len(known) else 0
            kept[-1].append(front)
            tails.append(rows[:, front:].tobytes())
    # Nothing in common: the whole frame is shorter than the frame with its bookkeeping.
    if not any(map(any, kept)):
        return frame
    said = {
        name: value
        for name, value in message.items()
        if name in ALWAYS or name not in old_message or value != old_message[name]
    }
    return {**said, "base": old_message["seq"], "kept": kept}, [memoryview(b"".join(tails))]


Bytes = npt.NDArray[np.uint8]


def _groups(layout: Layout, buffers: list[memoryview], place: int) -> list[Bytes]:
    return _rows(layout[place], buffers[place]) if place < len(layout) else []


def _rows(groups: list[tuple[int, int]], buffer: memoryview) -> list[Bytes]:
    """Return the rows of each group, (row, byte)."""
    numbers, start, found = np.frombuffer(buffer, np.uint8), 0, []
    for n_rows, size in groups:
        stop = start + n_rows * size
        found.append(numbers[start:stop].reshape(n_rows, size))
        start = stop
    return found


def _shared(rows: Bytes, known: Bytes) -> int:
    """Count the bytes at the front of every row that have not changed."""
    # Another number of rows means other modules: nothing at the front can be reused.
    if len(rows) != len(known):
        return 0
    width = min(rows.shape[1], known.shape[1])
    # Only bytes that no row has changed count, as one number describes the whole group.
    differs = (rows[:, :width] != known[:, :width]).any(axis=0)
    return int(differs.argmax()) if differs.any() else width
