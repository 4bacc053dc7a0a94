"""Runs that measure inside compiled graphs."""

from __future__ import annotations

from functools import partial

import pytest

from tests.run.conftest import Watch


@pytest.fixture
def watch(watch: Watch) -> Watch:
    return partial(watch, on_compiled="inside")
