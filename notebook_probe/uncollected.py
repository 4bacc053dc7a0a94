"""Building much that stays, without looking again and again whether any of it is garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["uncollected"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


def uncollected(build: Callable[Given, Result]) -> Callable[Given, Result]:
    """Call ``build`` with the cyclic garbage collector paused, and restore the collector's state.

    It passes over all objects whenever their number has grown by a quarter: of ten thousand
    modules, whose probes all stay, that takes nearly half of the time.
    """

    @wraps(build)
    def at_rest(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if not gc.isenabled():
            return build(*args, **kwargs)
        try:
            # Inside try: an interrupt right after it must not leave the collector off.
            gc.disable()
            return build(*args, **kwargs)
        finally:
            gc.enable()

    return at_rest
