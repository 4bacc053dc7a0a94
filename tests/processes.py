"""Processes that all tests of a worker share, each begun by the first test that needs it.

Importing torch takes seconds. What needs the same process goes to the same worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.run.accelerator import Accelerator
from tests.run.programs import Programs

SHARED = ("accelerator", "programs")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for process in SHARED:
            if process in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(process))


@pytest.fixture(scope="session")
def accelerator() -> Iterator[Accelerator]:
    """The process of the pretended accelerator."""
    one = Accelerator()
    yield one
    one.end()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """A process of which each program of a user is a fork."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    one = Programs(tmp_path_factory.mktemp("programs"))
    yield one
    one.end()
