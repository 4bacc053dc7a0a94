"""A record that a test file begins, in every state; one S3 server for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_probe.record import OpenedRecord, RecordWriter, open_record
from notebook_probe.record.write.recorded_source import RecordedSource
from tests.record.build import new_writer
from tests.record.store.s3_server import s3_server


@pytest.fixture
def writer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RecordWriter]:
    """A writer, of a record that the test file's ``begin_record(writer)`` has begun."""
    with new_writer(tmp_path / "a.zarr") as writer:
        request.module.begin_record(writer)
        yield writer


@pytest.fixture(params=["live", "half on disk", "opened"])
def source(writer: RecordWriter, request: pytest.FixtureRequest) -> RecordedSource | OpenedRecord:
    """The same record: in memory, flushed by the process that writes it, opened by another."""
    if request.param == "live":
        return writer.source
    assert writer.flush(60)
    return writer.source if request.param == "half on disk" else open_record(writer.location)


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint
