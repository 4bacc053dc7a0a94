"""What readers see between two requests, and what becomes of rows while a store is away."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.errors import RecordWriteError
from notebook_probe.record import open_record
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.store.remote.objects import ObjectEngine
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from tests.record.build import fill
from tests.record.stores import check_rows, engine_at, location_of, new_store, recording


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}"


@pytest.fixture
def after_each_request(store: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have something called after each object that is put or deleted, once there is a root."""

    def begin(look: Callable[[], None]) -> None:
        put, delete = ObjectEngine._put, ObjectEngine._delete
        reader = engine_at(store)

        async def watched_put(engine: ObjectEngine, key: str, content: bytes) -> None:
            await put(engine, key, content)
            if reader.read("zarr.json") is not None:
                look()

        async def watched_delete(engine: ObjectEngine, key: str) -> None:
            await delete(engine, key)
            look()

        monkeypatch.setattr(ObjectEngine, "_put", watched_put)
        monkeypatch.setattr(ObjectEngine, "_delete", watched_delete)

    return begin


@pytest.mark.slow
def test_between_any_two_requests_a_reader_finds_a_whole_commit(
    store: str, tmp_path: Path, after_each_request: Callable[..., None]
) -> None:
    seen: list[int] = []
    after_each_request(lambda: seen.append(check_rows(store)))
    with recording(location_of(store, tmp_path / "here")) as writer:
        for start in range(0, 100, 50):
            fill(writer.stream("every_1"), range(start, start + 50))
            assert writer.flush(60), writer.last_error
    with recording(location_of(store, tmp_path / "current_values"), resume=30) as writer:
        fill(writer.stream("every_1"), range(30, 80))
        assert writer.flush(60), writer.last_error
    assert list(dict.fromkeys(seen)) == [0, 50, 100, 30, 80]


@pytest.mark.slow
def test_values_for_old_steps_appear_together_as_well(
    store: str, tmp_path: Path, after_each_request: Callable[..., None]
) -> None:
    seen: list[tuple[float, ...]] = []

    def look() -> None:
        record = open_record(store)
        if "accuracy" in record.data:
            seen.append(tuple(record.series("fc", "accuracy").values.tolist()))

    after_each_request(look)
    for late in ([([3, 5], [1.0, 2.0]), ([1, 5], [3.0, 4.0])], [([0, 5], [5.0, 6.0])]):
        with recording(location_of(store, tmp_path / "spool")) as writer:
            for steps, values in late:
                writer.backfill("fc", "accuracy", steps, values)
                assert writer.flush(60), writer.last_error
    assert list(dict.fromkeys(seen)) == [(1, 2), (3, 1, 4), (5, 3, 1, 6)]


def test_a_chunk_that_does_not_change_is_shipped_once(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.record.store.remote.mirror.SETTLED_NS", 0)
    monkeypatch.setattr(HotChunks, "sizes", ChunkSizes(1000, 4096))
    sent: list[str] = []
    put = ObjectEngine._put

    async def noted(engine: ObjectEngine, key: str, content: bytes) -> None:
        sent.append(key)
        await put(engine, key, content)

    monkeypatch.setattr(ObjectEngine, "_put", noted)
    with recording(location_of(store, tmp_path / "spool")) as writer:
        for start in range(0, 1000, 100):
            fill(writer.stream("every_1"), range(start, start + 100))
            assert writer.flush(60)
    assert sent.count("scalars/every_1/grad_norm/c/0/0") <= 4  # while it is filled; when it is full
    assert "scalars/every_1/grad_norm/c/3/0" in sent
    assert check_rows(store) == 1000


def test_a_tail_is_compressed_on_its_way(store: str, tmp_path: Path) -> None:
    with recording(location_of(store, tmp_path / "spool")) as writer:
        fill(writer.stream("every_1"), range(10))
        assert writer.flush(60)
        engine = engine_at(store)
        sizes = [len(engine.read(key) or b"") for key in list(engine.keys()) if "/c/" in key]
        assert max(sizes) < 20_000


class Away(ConnectionError):
    """The network is down."""


@contextmanager
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object) -> Any:
        raise Away("no route to host\nand more")

    with monkeypatch.context() as patched:
        for name in ("_put", "read", "lease", "swap_lease"):
            patched.setattr(ObjectEngine, name, fail)
        patched.setattr("notebook_probe.record.store.remote.shipper.FIRST_PAUSE_S", 0.01)
        yield


def test_a_store_that_is_away_delays_nothing_but_the_shipping(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(location_of(store, tmp_path / "spool")) as writer:
        with away(monkeypatch):
            fill(writer.stream("every_1"), range(100))
            assert not writer.flush(60)
            assert "not shipped yet: Away: no route to host; everything is in " in writer.last_error
            assert writer.published_rows("every_1") == 100
            assert writer.dropped_rows == 0
        assert writer.flush(60)
        assert writer.last_error == ""
        assert check_rows(store) == 100


def test_what_could_not_be_shipped_at_the_end_is_shipped_by_the_next_writer(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.record.store.remote.shipper.CLOSE_S", 0.1)
    location = location_of(store, tmp_path / "spool")
    writer = recording(location)
    with away(monkeypatch):
        fill(writer.stream("every_1"), range(100))
        with pytest.raises(RecordWriteError, match=r"not shipped yet: .* everything is in"):
            writer.close()
    assert "not shipped yet" in writer.last_error
    assert writer.source.series("fc", "grad_norm").size == 100
    assert check_rows(store) == 0
    with recording(location) as again:  # without waiting for the lease of the one before
        assert again.last_step == 99
        assert check_rows(store) == 100
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_store_that_cannot_be_reached_is_refused(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        away(monkeypatch),
        pytest.raises(RecordWriteError, match=r"cannot reach memory://.*: Away: no route to host"),
    ):
        recording(location_of(store, tmp_path / "spool"))
    with recording(location_of(store, tmp_path / "spool")):
        pass
    assert open_record(store).finished


WRITER = """
import sys
from pathlib import Path
from tests.record.build import row
from tests.record.stores import location_of, recording
writer = recording(location_of(sys.argv[1], Path(sys.argv[2]), every_s=0.01), flush_s=0.01)
stream = writer.stream("every_1")
step = writer.last_step + 1
print("ready", flush=True)
while True:
    stream.record(step, step, row(stream, step))
    step += 1
    if step % 20 == 0:
        __import__("time").sleep(0.001)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["directory", "icechunk"])
def test_a_killed_writer_leaves_a_whole_record_and_loses_no_row_of_the_spool(
    kind: str, tmp_path: Path
) -> None:
    store, spool = new_store(kind, tmp_path), tmp_path / "spool"
    moments, n_rows = random.Random(5), 0
    for _ in range(2 if kind == "directory" else 1):
        command = [sys.executable, "-c", WRITER, store, str(spool)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            try:
                assert writer.stdout is not None
                assert b"ready\n" in iter(writer.stdout.readline, b"")  # icechunk talks as well
                wanted = n_rows + moments.randrange(50, 300)
                while n_rows < wanted:
                    assert writer.poll() is None
                    n_rows = check_rows(store)
            finally:
                writer.send_signal(signal.SIGKILL)
        assert check_rows(store) >= n_rows
        (left,) = spool.glob("*/record.zarr")
        n_rows = check_rows(left)
    with recording(location_of(store, spool)) as last:
        assert last.last_step == n_rows - 1
    assert check_rows(store) == n_rows
    assert list(spool.iterdir()) == []


FORGETFUL = """
import sys
from pathlib import Path
from tests.record.build import fill
from tests.record.stores import location_of, recording
writer = recording(location_of(sys.argv[1], Path(sys.argv[2])))
fill(writer.stream("every_1"), range(100))
"""


@pytest.mark.slow
def test_a_program_that_just_ends_has_shipped_everything(tmp_path: Path) -> None:
    store = new_store("directory", tmp_path)
    command = [sys.executable, "-W", "error", "-c", FORGETFUL, store, str(tmp_path / "spool")]
    subprocess.run(command, check=True, timeout=120)
    assert open_record(store).finished
    assert check_rows(store) == 100
    assert list((tmp_path / "spool").iterdir()) == []
