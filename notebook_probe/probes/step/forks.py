"""Telling a forked child from its parent, without asking at every call."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["silence_in_children"]


class Silenced(Protocol):
    """Protocol of an object that belongs to the process that made it."""

    is_silent: bool


_ours: weakref.WeakSet[Silenced] = weakref.WeakSet()


def silence_in_children(owner: Silenced) -> None:
    """Set ``owner.is_silent`` in every forked child; ``owner`` is held weakly."""
    _ours.add(owner)


def _forked() -> None:
    for owner in [*_ours]:
        owner.is_silent = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
