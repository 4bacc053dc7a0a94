"""Silence for torch while it tries to export a model: a failure is reported once, as text."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

__all__ = ["quiet"]


@contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings, torch's logs and this thread's stderr inside the context."""
    own = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    handlers = _handlers()
    for handler in handlers:
        handler.addFilter(is_of_others)
    try:
        # sys.stderr is the process's: other threads must still be able to write to it.
        with warnings.catch_warnings(), redirect_stderr(_OfOthers(sys.stderr, own)):
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_of_others)


def _handlers() -> list[logging.Handler]:
    """Return the handlers of torch's loggers; each part of torch may have its own."""
    every = [*logging.root.manager.loggerDict.items()]
    loggers = [one for name, one in every if name.partition(".")[0] == "torch"]
    return [
        handler for one in loggers if isinstance(one, logging.Logger) for handler in one.handlers
    ]


class _OfOthers:
    """A stream to which one thread writes in vain."""

    def __init__(self, stream: Any, silent: int) -> None:
        self._stream, self._silent = stream, silent

    def write(self, text: str) -> int:
        if threading.get_ident() == self._silent:
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
