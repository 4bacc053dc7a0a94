"""A rank that is gone or behind, by what its record has published, on a clock of the test."""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from zarr.storage import MemoryStore

from notebook_probe.alerts import Rules
from notebook_probe.record.store.location import RemoteStore
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import SingleObjects
from notebook_probe.record.store.remote.objects import ObjectEngine
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.ranks import siblings
from notebook_probe.run.facts.ranks.comparing import RankFacts
from notebook_probe.run.facts.ranks.differences import differences
from notebook_probe.run.facts.ranks.replica import REPLICA, Replica, ReplicaState
from notebook_probe.run.facts.ranks.siblings import siblings_of

STATE = ReplicaState(4, 10.0, np.array([1.0, 2.0]), (0.1,))
HERE = Replica(("a.weight", "b.weight"), ("float32",) * 2, (8, 8), (STATE,), 7, 20.0, True, "host")
CALL = "all_to_all_single() of shape (4, 3) at moe.py:8"


class Published:
    """Stands for a record and its rank."""

    shards = None

    def __init__(self, folder: Path) -> None:
        self.store = folder / "rank_00000"
        self.location = str(self.store)
        self.attrs: dict[str, Any] = {}

    def annotate(self, **attrs: Any) -> None:
        self.attrs |= attrs

    def replica(self) -> Replica:
        return HERE

    call = CALL

    def waits_in(self) -> str:
        return self.call


@pytest.fixture
def two_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)


def said_of(
    other: Replica, folder: Path, now: float, state: str = "open", first_call: str = CALL
) -> list[str]:
    """Return what rank 0 reports at a time, and some seconds before, when it may be elsewhere."""
    path = folder / "rank_00001" / "zarr.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({"attributes": {REPLICA: json.dumps(other.to_json()), "state": state}})
    )
    record, findings = Published(folder), FactFindings(Rules())
    clock = [12.0]
    facts = RankFacts(
        record,  # type: ignore[arg-type]
        record,  # type: ignore[arg-type]
        findings,
        lambda: clock[-1],
    )
    for at, call in ((now - 6.0, first_call), (now, CALL)):
        clock.append(at)
        record.call = call
        facts.look()
        facts.prepare_last_look()
    published = Replica.from_json(json.loads(record.attrs[REPLICA]))
    assert replace(published, waits_in="").to_json() == HERE.to_json()
    return [onset.sentence for _, onset in findings.take()]


@pytest.mark.parametrize(
    ("step", "since", "now", "has_writer", "state", "text"),
    [
        (7, 15.0, 900.0, True, "open", ""),
        (6, 15.0, 70.0, True, "open", ""),  # rank 0 has been in this step for 50 s
        (6, 15.0, 81.0, True, "open", "rank 1 is at step 6 and has not moved for 61 s"),
        (4, 15.0, 24.0, True, "open", ""),
        (4, 15.0, 24.0, False, "open", "rank 1 is at step 4 and has no process any more"),
        (6, 15.0, 900.0, False, "closed", ""),
        (4, 15.0, 21.0, False, "closed", "rank 1 is at step 4 and has ended its run"),
        (2, 9.0, 900.0, False, "open", ""),  # of a job before this one
    ],
)
def test_a_rank_that_is_behind_is_named_after_a_while(
    step: int,
    since: float,
    now: float,
    has_writer: bool,
    state: str,
    text: str,
    two_ranks: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(siblings, "has_writer", lambda folder: has_writer)
    said = said_of(replace(HERE, step=step, since=since), tmp_path, now, state)
    assert len(said) == bool(text)
    assert not text or said[0].startswith(text)


@pytest.mark.parametrize(
    ("waits_in", "step", "now", "is_named"),
    [
        (CALL.replace("3", "4"), 7, 81.0, True),
        (CALL, 7, 900.0, False),  # one call, which may take long
        ("", 7, 900.0, False),  # the other rank computes
        (CALL.replace("3", "4"), 7, 79.0, False),
        ("barrier() at train.py:5", 6, 70.0, False),  # it is behind
    ],
)
def test_ranks_in_other_collectives_of_one_step_are_named_after_a_while(
    waits_in: str, step: int, now: float, is_named: bool, two_ranks: None, tmp_path: Path
) -> None:
    other = replace(HERE, step=step, waits_in=waits_in)
    said = [one for one in said_of(other, tmp_path, now) if "collectives" in one]
    assert len(said) == is_named
    assert not is_named or f"rank 0: {CALL}; rank 1: {waits_in}" in said[0]


def test_a_rank_that_is_soon_elsewhere_waits_for_no_other_collective(
    two_ranks: None, tmp_path: Path
) -> None:
    """After an evaluation of one rank alone the others publish late that they have continued."""
    other = replace(HERE, waits_in="barrier() at train.py:5")
    assert said_of(other, tmp_path, 90.0, first_call="") == []


def test_types_and_weights_are_compared_where_both_ranks_have_the_layer() -> None:
    norms = ReplicaState(4, 10.0, np.array([1.0, 2.0 + 1e-6]), (0.1,))
    other = replace(HERE, dtypes=("bfloat16", "float32"), states=(norms,))
    found = {one.kind: one for one in differences(HERE, other, 3)}
    assert found["dtypes"].modules == ("a",)
    assert found["dtypes"].text == "float32 on rank 0 and bfloat16 on rank 3"
    assert found["weights"].modules == ("b",)
    assert found.keys() == {"dtypes", "weights"}
    for stage in (replace(other, names=("c.weight", "d.weight")), replace(other, sizes=(4, 4))):
        assert [*differences(HERE, stage, 3)] == []


def test_the_last_digit_of_a_norm_is_no_difference() -> None:
    near = ReplicaState(4, 10.0, np.array([1.0 + 1e-8, np.nan]), (0.1,))
    mine = replace(HERE, states=(ReplicaState(4, 10.0, np.array([1.0, np.nan]), (0.1,)),))
    assert [*differences(mine, replace(HERE, states=(near,)), 1)] == []


class OnStore(Published):
    """Stands for a record at a URL, whose sibling is an object that the test replaces."""

    def __init__(self, url: str, every_s: float) -> None:
        self.store = RemoteStore(f"{url}/rank_00000", every_s=every_s)  # type: ignore[assignment]
        self.location = str(self.store)
        self.attrs = {}
        self.findings = FactFindings(Rules())
        self.now = 12.0
        self.facts = RankFacts(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.findings,
            lambda: self.now,
        )

    def said_at(self, now: float) -> list[str]:
        """Return the findings once the store has answered."""
        self.now = now
        self.facts.look()
        self.facts.prepare_last_look()
        self.facts.look()
        return [onset.sentence for _, onset in self.findings.take()]


def put(url: str, other: Replica, *, is_leased: bool = True, state: str = "open") -> None:
    engine = engine_of(RemoteStore(f"{url}/rank_00001"))
    assert isinstance(engine, SingleObjects)
    attrs = {REPLICA: json.dumps(other.to_json()), "state": state}
    engine.put("zarr.json", json.dumps({"attributes": attrs}).encode())
    engine.put(
        ".lease", json.dumps({"ends": time.time() + (3600 if is_leased else -3600)}).encode()
    )


def test_ranks_at_a_url_are_compared(two_ranks: None) -> None:
    differing = ReplicaState(4, 10.0, np.array([1.0, 2.5]), (0.1,))
    url = f"memory://{uuid.uuid4()}/job"
    record = OnStore(url, every_s=15.0)
    assert record.said_at(13.0) == []
    put(url, HERE)
    assert record.said_at(14.0) == []
    put(url, replace(HERE, states=(differing,)))
    [said] = record.said_at(15.0)
    assert said.startswith("ranks 0, 1 should be equal")
    assert record.said_at(16.0) == []


def test_a_rank_at_a_url_is_late_before_it_stands_still(two_ranks: None) -> None:
    url = f"memory://{uuid.uuid4()}/job"
    record = OnStore(url, every_s=15.0)
    put(url, replace(HERE, step=2, since=15.0))
    assert record.said_at(900.0) == []  # what it did since is not shipped yet
    assert record.said_at(1000.0) == []  # 100 s, of which 45 may be on the way
    [said] = record.said_at(1006.0)
    assert said.startswith("rank 1 is at step 2 and has not moved for 61 s")


def test_a_rank_whose_lease_has_ended_is_gone_and_one_that_cannot_be_asked_is_not(
    two_ranks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{uuid.uuid4()}/job"
    record = OnStore(url, every_s=1.0)
    put(url, replace(HERE, step=2, since=15.0))
    assert record.said_at(30.0) == []
    put(url, replace(HERE, step=2, since=15.0), is_leased=False)

    def fail(engine: object) -> Any:
        raise OSError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectEngine, "lease", fail)
        assert record.said_at(60.0) == []
    [said] = record.said_at(61.0)
    assert said.startswith("rank 1 is at step 2 and has no process any more")


def test_a_store_that_does_not_answer_holds_nobody_up(
    two_ranks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{uuid.uuid4()}/job"
    answers, reads = threading.Event(), []

    def wait(engine: object, key: str) -> bytes | None:
        reads.append(key)
        answers.wait(60.0)
        return None

    monkeypatch.setattr(ObjectEngine, "read", wait)
    monkeypatch.setattr(siblings, "LAST_S", 0.0)
    record = OnStore(url, every_s=0.0)
    try:
        assert [record.said_at(float(now)) for now in range(20, 25)] == [[]] * 5
        assert len(reads) <= 1  # the next look waits for the one before
    finally:
        answers.set()


def test_an_object_has_no_siblings() -> None:
    assert siblings_of(MemoryStore()) is None
