"""Collected only where the notebooks are installed; nothing leaves this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser.conftest import browser, page
from tests.frontends.servers import Server

__all__ = ["browser", "page"]

# Asked for one notebook alone: another that is missing must fail the tests, not skip them.
collect_ignore_glob = [] if find_spec("marimo") else ["*.py"]

Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on code cells: ``serve(marimo, cells, "edit")``; it ends with the test."""
    started: list[Server] = []

    def start(kind: Callable[..., Server], cells: Sequence[str], *arguments: str) -> Server:
        started.append(kind(tmp_path, cells, *arguments))
        return started[-1]

    yield start
    for server in started:
        server.close()
