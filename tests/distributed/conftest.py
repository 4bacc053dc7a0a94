"""One pair of processes for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.distributed.pair import Pair


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    both = Pair()
    yield both
    both.end()
