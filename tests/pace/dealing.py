"""Scheduling of pytest-xdist: file by file, and marked groups as one."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

__all__ = ["ByFile"]


class ByFile(LoadGroupScheduling):
    """Assign whole files to workers, those with most tests first.

    With single tests, each worker would run a file's shared fixtures, and the scheduler would go
    through everything it has assigned after each of ten thousand tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadgroup" else None
