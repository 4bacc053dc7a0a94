"""Error of the framework callbacks if their library is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from notebook_probe.errors import MissingExtraError

__all__ = ["needs"]


@contextmanager
def needs(package: str) -> Iterator[None]:
    """Import a library inside; without it, the error says how to install it.

    Raises
    ------
    MissingExtraError
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this callback is for {package}, which is not installed: pip install {package}"
        ) from error
