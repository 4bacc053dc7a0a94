"""Sentences for the user, such as where a run is recorded, by the logger ``notebook_probe``."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

__all__ = ["LOGGER", "report"]

LOGGER = logging.getLogger("notebook_probe")


class _ToStdout(logging.StreamHandler[TextIO]):
    """Handler that writes to the present standard output.

    A notebook and a redirection replace it after this handler was made.
    """

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stdout

    @stream.setter
    def stream(self, value: Any) -> None:
        raise AttributeError("it is always the standard output")


def report(text: str) -> None:
    """Log a sentence at level INFO; without a handler of the user it goes to the standard output.

    Examples
    --------
    >>> report("recording to runs/first.zarr")
    recording to runs/first.zarr
    >>> LOGGER.setLevel("WARNING")
    >>> report("recording to runs/first.zarr")
    >>> LOGGER.setLevel("INFO")
    """
    if not LOGGER.handlers:
        LOGGER.addHandler(_ToStdout())
        # Handlers of the root logger would write the sentence a second time.
        LOGGER.propagate = False
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
    LOGGER.info(text)
