"""A rank that is gone or behind, by what its record has published, on a clock of the test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist

from notebook_probe.alerts import Rules
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.ranks import comparing
from notebook_probe.run.facts.ranks.comparing import RankFacts
from notebook_probe.run.facts.ranks.differences import differences
from notebook_probe.run.facts.ranks.replica import REPLICA, Replica, ReplicaState

STATE = ReplicaState(4, 10.0, np.array([1.0, 2.0]), (0.1,))
HERE = Replica(("a.weight", "b.weight"), ("float32",) * 2, (8, 8), (STATE,), 7, 20.0, True, "host")


class Published:
    """Stands for a record and its rank."""

    def __init__(self, folder: Path) -> None:
        self.location = str(folder / "rank_00000")
        self.attrs: dict[str, Any] = {}
        self.shards = None

    def annotate(self, **attrs: Any) -> None:
        self.attrs |= attrs

    def replica(self) -> Replica:
        return HERE


@pytest.fixture
def two_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)


def said_of(other: Replica, folder: Path, now: float, state: str = "open") -> list[str]:
    path = folder / "rank_00001" / "zarr.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({"attributes": {REPLICA: json.dumps(other.to_json()), "state": state}})
    )
    record, findings = Published(folder), FactFindings(Rules())
    began = iter([12.0])
    facts = RankFacts(
        record,  # type: ignore[arg-type]
        record,  # type: ignore[arg-type]
        findings,
        lambda: next(began, now),
    )
    facts.look()
    assert Replica.from_json(json.loads(record.attrs[REPLICA])).to_json() == HERE.to_json()
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
    monkeypatch.setattr(comparing, "has_writer", lambda folder: has_writer)
    said = said_of(replace(HERE, step=step, since=since), tmp_path, now, state)
    assert len(said) == bool(text)
    assert not text or said[0].startswith(text)


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
