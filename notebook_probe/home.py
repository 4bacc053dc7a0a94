"""The user's folder for files that belong to no single record."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HOME", "home"]

HOME = "NOTEBOOK_PROBE_HOME"
"""Variable of the environment."""


def home() -> Path:
    """``NOTEBOOK_PROBE_HOME``, else ``~/.notebook_probe``; nothing is made here.

    Raises
    ------
    RuntimeError
        There is no home at all.
    """
    named = os.environ.get(HOME, "")
    return Path(named).expanduser().absolute() if named else Path.home() / ".notebook_probe"
