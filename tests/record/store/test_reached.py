"""A store that does not answer: one error that says so, and nothing is taken for damage."""

from __future__ import annotations

import socket
import warnings
from pathlib import Path

import pytest
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import MemoryStore

import notebook_probe as nbp
from notebook_probe.errors import StoreSilentError
from notebook_probe.record.store.location import RemoteStore
from notebook_probe.record.store.remote.reached import failure
from notebook_probe.record.store.writing import find_writer, has_writer
from tests.record.build import fill
from tests.record.stores import location_of, recording


class AwayStore(MemoryStore):
    """Values in memory, which cannot be read while ``is_away``."""

    is_away = False

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        if self.is_away:
            raise StoreSilentError("cannot reach it")
        return await super().get(key, prototype, byte_range)


@pytest.fixture
def nobody() -> RemoteStore:
    """A record on a server that is not running."""
    pytest.importorskip("obstore")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    keys = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}
    return RemoteStore("s3://bucket/run.zarr", options={**keys, "endpoint": endpoint})


@pytest.mark.slow
def test_a_server_that_is_not_running_is_no_damaged_record(nobody: RemoteStore) -> None:
    with pytest.raises(StoreSilentError) as error:
        nbp.open_run(nobody)
    text = str(error.value)
    assert text.startswith("cannot reach s3://bucket/run.zarr: ")
    assert "http://" not in text
    assert "Debug" not in text
    with pytest.raises(Exception, match="error sending request"):
        find_writer(nobody)
    assert not has_writer(nobody)


def test_an_opened_record_keeps_what_was_read_and_goes_on_once_its_store_answers(
    tmp_path: Path,
) -> None:
    store = AwayStore()
    with recording(location_of(store, tmp_path)) as writer:
        fill(writer.stream("every_1"), range(3))
        assert writer.flush(60.0)
        opened = nbp.open_run(store)
        streams = opened.paths.keys()
        opened._signature = None  # as a second later
        store.is_away = True
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no part is left out
            for _ in range(2):
                with pytest.raises(StoreSilentError):
                    _ = opened.revision
        assert opened.paths.keys() == streams
        store.is_away = False
        before = opened._revision
        assert opened.revision == before + 1, "without waiting for another second"


def test_a_reason_has_neither_the_address_nor_the_attempts() -> None:
    text = "Generic S3 error: Error performing GET http://a/b in 3s, after 2 retries - no route"
    several = ExceptionGroup("two", [OSError(f"{text}\n\nDebug source: x"), ValueError()])
    assert failure(several) == "OSError: no route"
    assert failure(OSError()) == "OSError: no reason given"
