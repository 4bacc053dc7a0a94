"""A store that loses what it was given, and one that does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.record.store.remote import shipper
from notebook_probe.record.store.remote.objects import ObjectEngine
from tests.record.build import fill
from tests.record.stores import check_rows, engine_at, location_of, new_store, recording


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}"


def empty(store: str) -> None:
    engine = engine_at(store)
    assert isinstance(engine, ObjectEngine)
    for key in [*engine.keys(), ".lease"]:
        engine.delete(key)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def test_a_bucket_that_was_emptied_is_noticed_and_filled_from_the_spool(
    store: str, tmp_path: Path
) -> None:
    writer = recording(location_of(store, tmp_path / "spool"))
    fill(writer.stream("every_1"), range(50))
    assert writer.flush(60)
    empty(store)
    fill(writer.stream("every_1"), range(50, 60))
    with pytest.warns(RecordWarning, match=r"\d+ objects had gone from memory://.*; sent again"):
        writer.close()
    assert check_rows(store) == 60
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_store_that_keeps_nothing_leaves_the_spool_which_has_all(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper, "CLOSE_S", 0.1)
    writer = recording(location_of(store, tmp_path / "spool"))
    fill(writer.stream("every_1"), range(50))
    assert writer.flush(60)
    monkeypatch.setattr(ObjectEngine, "keys", lambda _: [])
    with (
        pytest.warns(RecordWarning, match="sent again"),
        pytest.raises(RecordWriteError, match=r"the store lacks \d+ objects.* everything is in"),
    ):
        writer.close()
    (left,) = (tmp_path / "spool").glob("*/record.zarr")
    assert check_rows(left) == 50


@pytest.mark.parametrize("kind", ["directory", "zarr", "icechunk"])
def test_what_was_shipped_is_found_in_a_store_of_any_kind(kind: str, tmp_path: Path) -> None:
    store = new_store(kind, tmp_path)
    with recording(location_of(store, tmp_path / "spool")) as writer:
        fill(writer.stream("every_1"), range(20))
    assert check_rows(store) == 20
    assert list((tmp_path / "spool").iterdir()) == []


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Requests that get no answer until the end; the event tells that one is waiting."""
    asked, over = threading.Event(), threading.Event()

    async def hang(*_: object) -> None:
        asked.set()
        over.wait(60)
        raise ConnectionError("at last")

    with monkeypatch.context() as patched:
        patched.setattr(ObjectEngine, "_put", hang)
        try:
            yield asked
        finally:
            over.set()


def test_a_store_that_does_not_answer_is_told_of_while_it_hangs(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper, "QUIET_S", 0.02)
    writer = recording(location_of(store, tmp_path / "spool", every_s=0.01))
    with hanging(monkeypatch) as asked:
        fill(writer.stream("every_1"), range(50))
        writer.flush(0.01)
        assert asked.wait(60)
        wait_for(lambda: "not shipped yet: no answer for" in writer.last_error)
        assert "everything is in" in writer.last_error
    wait_for(lambda: writer.last_error == "")
    writer.close()
    assert check_rows(store) == 50


def test_closing_waits_no_longer_than_it_says_for_a_store_that_hangs(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper, "CLOSE_S", 0.05)
    monkeypatch.setattr(shipper, "SLACK_S", 0.05)
    writer = recording(location_of(store, tmp_path / "spool"))
    with hanging(monkeypatch):
        fill(writer.stream("every_1"), range(50))
        with pytest.raises(RecordWriteError, match=r"not shipped yet.*everything is in"):
            writer.close()  # before the store answers, which it does after this block
    wait_for(lambda: not writer._place._shipper.is_running)  # type: ignore[attr-defined]
    (left,) = (tmp_path / "spool").glob("*/record.zarr")
    assert check_rows(left) == 50
