"""Telling a forked child from its parent, without asking the system at every call."""

from __future__ import annotations

import os

__all__ = ["generation"]

_generation = 0


def generation() -> int:
    """Grows in a forked child: what was made before belongs to the parent."""
    return _generation


def _forked() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
