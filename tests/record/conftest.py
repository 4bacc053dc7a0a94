"""One S3 server for all tests that want one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.record.store.s3_server import s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint
