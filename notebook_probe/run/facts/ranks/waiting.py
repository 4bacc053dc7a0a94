"""Ranks that wait for each other: each is in a collective, and in another one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from notebook_probe.source_lines import is_of_user, outward, text_of

__all__ = ["deadlock_text", "waits_in"]

COLLECTIVES = str(Path(torch.__file__).parent / "distributed" / "distributed_c10d.py")
TAKEN = ("tensor", "input", "output", "input_tensor", "output_tensor")
"""Names of the tensors that a collective is given."""


def waits_in(thread: int) -> str:
    """Return the collective that a thread is in, with the shape of its tensor and the user's line.

    Empty if it is in none, or in one that torch calls in C++, as in a backward pass.
    """
    name = ""
    for frame in outward(sys._current_frames().get(thread)):
        if frame.f_code.co_filename == COLLECTIVES and "group" in frame.f_code.co_varnames:
            given = [frame.f_locals.get(one) for one in TAKEN]
            shapes = [tuple(one.shape) for one in given if isinstance(one, Tensor)]
            name = f"{frame.f_code.co_name}()" + (f" of shape {shapes[0]}" if shapes else "")
        elif name and is_of_user(frame):
            return f"{name} at {text_of(frame)}"
    return name


def deadlock_text(waiting: Mapping[int, str]) -> str:
    """Return what the ranks wait in, if each waits and not all do in the same call.

    Examples
    --------
    >>> deadlock_text({0: "recv() at a.py:3", 1: "recv() at a.py:3", 2: "send() at a.py:5"})
    'rank 0, 1: recv() at a.py:3; rank 2: send() at a.py:5'
    >>> deadlock_text({0: "barrier() at a.py:7", 1: ""}), deadlock_text({0: "x", 1: "x"})
    ('', '')
    """
    calls = [*dict.fromkeys(waiting.values())]
    if "" in calls or len(calls) < 2:
        return ""
    ranks = {call: [str(rank) for rank, one in waiting.items() if one == call] for call in calls}
    return "; ".join(f"rank {', '.join(some)}: {call}" for call, some in ranks.items())
