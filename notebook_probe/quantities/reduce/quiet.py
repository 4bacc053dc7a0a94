"""Numpy without its warnings, for NaN, infinite or out-of-range numbers in a model's tensors."""

from __future__ import annotations

import threading
from contextvars import Context

import numpy as np

__all__ = ["quiet"]


class _Quiet(threading.local):
    """A context for each thread in which numpy warns of nothing.

    To run something in it takes a tenth of what `numpy.errstate` takes. Code that runs in it must
    not enter it again.

    Examples
    --------
    >>> float(quiet.run(np.log, 0.0))
    -inf
    """

    # numpy's error state is a context variable: set once in a context of this thread, it applies to
    # whatever runs there.
    def __init__(self) -> None:
        self.run = Context().run
        self.run(np.seterr, all="ignore")


quiet = _Quiet()
