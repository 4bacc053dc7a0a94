"""The lease of a remote record: one writer at a time, and nobody waits for the dead for long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from notebook_probe.errors import RecordLockedError, RecordWriteError
from notebook_probe.record.store.remote.engine import Engine
from notebook_probe.record.store.remote.lease import LEASE_S, Lease
from tests.record.build import fill
from tests.record.stores import KINDS, check_rows, engine_at, location_of, new_store, recording


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return engine_at(new_store(request.param, tmp_path, request))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let so many seconds pass for whoever looks at the clock of the wall."""
    passed = [0.0]
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + sum(passed))
    return passed.append


def test_a_lease_is_taken_over_when_its_time_is_over(engine: Engine, later: Any) -> None:
    first = Lease(engine, "first")
    with pytest.raises(RecordLockedError, match="has another writer: process"):
        Lease(engine, "second")
    later(LEASE_S + 1)
    second = Lease(engine, "second")
    with pytest.raises(RecordLockedError, match="another writer took over"):
        first.renew()
    second.renew()


def test_a_lease_that_is_renewed_stays(engine: Engine, later: Any) -> None:
    first = Lease(engine, "first")
    for _ in range(3):
        later(LEASE_S / 2)
        first.renew()
        with pytest.raises(RecordLockedError):
            Lease(engine, "second")
    first.release()
    assert engine.lease() is None
    Lease(engine, "second")


def test_the_writers_own_lease_is_free_at_once(engine: Engine) -> None:
    Lease(engine, "same")
    Lease(engine, "same").renew()


def test_of_several_that_want_it_at_once_one_gets_it(engine: Engine) -> None:
    if engine.name.startswith("icechunk://"):
        pytest.skip("icechunk itself warns of a folder with several writers")
    Lease(engine, "first").release()  # which makes a repository; two must not do that at once
    together, winners = Barrier(4), []

    def want(token: str) -> None:
        together.wait()
        with suppress(RecordLockedError):
            winners.append(Lease(engine, token))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(want, "abcd"))
    kept = []
    for lease in winners:
        with suppress(RecordLockedError):  # a plain store tells only now
            lease.renew()
            kept.append(lease)
    assert len(kept) == 1


def test_the_answer_to_a_renewal_may_get_lost(engine: Engine) -> None:
    lease = Lease(engine, "first")
    before = lease._held
    lease.renew()
    lease._held = before  # as if the answer had not come
    lease.renew()
    lease.renew()


def test_what_is_no_lease_keeps_nobody_away(engine: Engine) -> None:
    engine.swap_lease(b"[1, 2", None)
    Lease(engine, "first").renew()


def test_a_writer_that_lost_its_lease_ships_no_more_and_says_so(
    tmp_path: Path, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.record.store.remote.lease.RENEW_S", 0.0)
    store = f"memory://{tmp_path.name}"
    first = recording(location_of(store, tmp_path / "here"))
    fill(first.stream("every_1"), range(5))
    assert first.flush(60)
    later(LEASE_S + 1)
    with recording(location_of(store, tmp_path / "current_values")) as second:
        fill(first.stream("every_1"), range(5, 50))
        assert not first.flush(60)
        assert "another writer took over memory://" in first.last_error
        fill(second.stream("every_1"), range(5, 10))
    with pytest.raises(RecordWriteError, match="another writer took over memory://"):
        first.close()
    assert check_rows(store) == 10
    (left,) = (tmp_path / "here").glob("*/record.zarr")
    assert check_rows(left) == 50
    with recording(location_of(store, tmp_path / "here")) as third:
        assert third.last_step == 9
        (told,) = [event.text for event in third.source.events if event.kind == "spool"]
    assert check_rows(Path(told.rpartition(" in ")[2])) == 50
    assert check_rows(store) == 10


def test_a_lease_is_renewed_between_shipments_that_are_far_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.record.store.remote.lease.RENEW_S", 0.0)
    monkeypatch.setattr("notebook_probe.record.store.remote.shipper.RENEW_S", 0.01)
    store = f"memory://{tmp_path.name}"
    engine = engine_at(store)
    with recording(location_of(store, tmp_path / "spool")) as writer:  # ships when it is asked to
        fill(writer.stream("every_1"), range(5))
        first, until = engine.lease(), time.monotonic() + 60
        while engine.lease() == first:
            assert time.monotonic() < until
        assert check_rows(store) == 0
