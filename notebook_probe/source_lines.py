"""The user's line that runs now, found from inside of a function or hook that torch calls.

Only frames are walked, and no source is read, so that it may be asked for at every function.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Literal, TypeAlias

import torch

__all__ = ["UNKNOWN_LINE", "Origin", "is_of_user", "origin_of", "outward", "text_of", "user_line"]

Origin: TypeAlias = Literal["user", "library", "python", "torch", "ours"]
"""Origin of a source file: the user's, an installed package, Python's own, torch, this package."""

UNKNOWN_LINE = "an unknown line"

PACKAGE = str(Path(__file__).parent) + os.sep
TORCH = str(Path(torch.__file__).parent) + os.sep
INSTALLED = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})
PYTHON = sysconfig.get_path("stdlib"), "<frozen"


@lru_cache(maxsize=1024)
def origin_of(file: str) -> Origin:
    """Return the origin of a source file.

    Examples
    --------
    >>> origin_of(torch.nn.functional.__file__), origin_of("/home/me/train.py")
    ('torch', 'user')
    """
    if file.startswith(PACKAGE):
        return "ours"
    if file.startswith(TORCH):
        return "torch"
    if file.startswith(INSTALLED):  # mostly a folder inside of Python's
        return "library"
    return "python" if file.startswith(PYTHON) else "user"


def is_of_user(frame: FrameType) -> bool:
    """Return whether a frame runs code of the user, or of a library that the user chose.

    A model may come from a package: its lines say where to look as well.
    """
    return origin_of(frame.f_code.co_filename) in ("user", "library")


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def text_of(frame: FrameType) -> str:
    """Return the line that a frame runs, as ``model.py:12``."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def user_line() -> str:
    """Return the innermost line of the user's code that runs now.

    Examples
    --------
    >>> user_line()  # doctest: +SKIP
    'model.py:12'
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame):
        frame = frame.f_back
    return UNKNOWN_LINE if frame is None else text_of(frame)
