"""Runs that measure inside compiled graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters

from tests.run.conftest import Watch


@pytest.fixture
def watch(watch: Watch) -> Watch:
    return partial(watch, on_compiled="inside")


@pytest.fixture(autouse=True)
def no_breaks_before() -> None:
    """Forget the graph breaks of other tests."""
    counters["graph_break"].clear()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget what was compiled before, and what a test compiles."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
