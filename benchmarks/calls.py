"""Calls of functions of the package in a training step, by room: what does not vary with load."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import notebook_probe as nbp
from benchmarks.pairs import Step

__all__ = ["by_room", "calls_of"]

ROOT = Path(nbp.__file__).parent
ROOM_PARTS = 3
"""Folders of a room's name, as in ``probes/step/frame.py``."""


def calls_of(step: Step, n_steps: int) -> Counter[str]:
    """Calls in some steps, by file."""
    calls: Counter[str] = Counter()
    own = str(ROOT)

    def count(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(own):
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(count)
    try:
        for _ in range(n_steps):
            step()
    finally:
        sys.setprofile(None)
    return calls


def by_room(calls: Counter[str], n_steps: int) -> dict[str, float]:
    """Calls in a step, by room, the most first."""
    rooms: Counter[str] = Counter()
    for file, n in calls.items():
        rooms["/".join(Path(file).relative_to(ROOT).parts[:ROOM_PARTS])] += n
    return {room: n / n_steps for room, n in rooms.most_common()}
