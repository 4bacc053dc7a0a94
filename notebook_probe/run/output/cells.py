"""The beginning of each cell of a notebook, where IPython wraps the streams."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["each_cell"]

BEGINS = "pre_run_cell"


def each_cell(call: Callable[[], None]) -> None:
    """Call a method, whose object is held weakly, as each cell begins; nothing without IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    method = weakref.WeakMethod(call)

    def begins(*_: Any) -> None:
        alive = method()
        if alive is None:
            shell.events.unregister(BEGINS, begins)
            return
        with suppress(Exception):  # a cell must not fail
            alive()

    shell.events.register(BEGINS, begins)
