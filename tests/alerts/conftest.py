"""Rules that a test defines are forgotten after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notebook_probe.alerts import RULES


@pytest.fixture(autouse=True)
def _own_rules() -> Iterator[None]:
    before = dict(RULES._members)
    yield
    RULES._members = before
