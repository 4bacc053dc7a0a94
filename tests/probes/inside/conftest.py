"""Runs that measure inside compiled graphs."""

from __future__ import annotations

from functools import partial

import pytest
from torch._dynamo.utils import counters

from tests.run.conftest import Watch


@pytest.fixture
def watch(watch: Watch) -> Watch:
    return partial(watch, on_compiled="inside")


@pytest.fixture(autouse=True)
def no_breaks_before() -> None:
    """Forget the graph breaks of other tests."""
    counters["graph_break"].clear()
