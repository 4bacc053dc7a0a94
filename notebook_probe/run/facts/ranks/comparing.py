"""Comparison of the ranks of a job by rank 0, from what their records publish."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from notebook_probe.record.format.schema import SHARDS
from notebook_probe.record.read.ranks import rank_name
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.ranks.differences import RankDifference, differences
from notebook_probe.run.facts.ranks.publishing import OwnReplica, is_distributed
from notebook_probe.run.facts.ranks.replica import REPLICA, Replica
from notebook_probe.run.facts.ranks.siblings import Siblings, siblings_of
from notebook_probe.run.facts.ranks.waiting import deadlock_text

__all__ = ["RankFacts"]

DEADLOCK = "ranks_wait"
RESTS = 100.0
"""Times as long as a look takes until the next one."""
GONE_S = 5.0
"""Seconds after which a rank whose process has ended is reported."""

STEADY_S = 5.0
"""Seconds during which ranks wait in the same calls: one that has continued publishes it later."""

FROM_THE_START = (
    "they begin so; call torch.manual_seed(0) before the model is made, or train "
    "DistributedDataParallel(model)"
)
BYPASSED = (
    "the module is called without its DistributedDataParallel wrapper, so that gradients are not "
    "averaged: call the wrapper itself, ddp(x)"
)
CHANGED_ALONE = (
    "a rank changes its gradients alone after they are averaged, as by clipping: do the same on "
    "each rank"
)
TO_TELL = "If gradients differ before clipping, it is the first"
ENDED = "has ended its run, and rank 0 trains on: give each rank the same number of batches"
GONE = "has no process any more, and the others wait for it: look at its output"
STANDS = (
    "has not moved for {:.0f} s, and the others wait for it: it may evaluate, save or wait for "
    "data alone; py-spy dump --pid shows where"
)


@dataclass(frozen=True)
class _KnownRank:
    """Known state of another rank."""

    replica: Replica
    has_closed: bool
    since: float
    """Time from which its step is known to be open: on a store, at which it was read there."""


class RankFacts:
    """Publication of a rank's state; in rank 0, facts about all ranks.

    Parameters
    ----------
    own : OwnReplica
    writer : RecordWriter
        Writer of this rank's record; the records of the others are next to it.
    findings : FactFindings
    now : callable
        Returns the seconds since the epoch.
    """

    def __init__(
        self,
        own: OwnReplica,
        writer: RecordWriter,
        findings: FactFindings,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._own, self._writer, self._findings, self._now = own, writer, findings, now
        self._began = now()
        is_first = Path(writer.location).name == rank_name(0)
        self._siblings = siblings_of(writer.store) if is_first else None
        self._published: tuple[int, int, str] | None = None
        self._others: dict[int, _KnownRank] = {}
        self._shards: dict[str, int] | None = None
        self._known: set[str] = set()
        self._still: set[int] = set()
        self._waiting: tuple[tuple[int, str], float] = (-1, ""), 0.0
        self._next_look = 0.0

    def look(self) -> None:
        """Publish this rank's state, and compare it; on the writer's thread, before a flush."""
        shards = self._own.shards
        if shards is not self._shards:
            self._shards = shards
            self._writer.annotate(**{SHARDS: json.dumps(shards)})
        mine = self._own.replica()
        if mine is None:
            return
        if self._now() - mine.since > self._findings.threshold(DEADLOCK, "seconds") / 2:
            mine = replace(mine, waits_in=self._own.waits_in())
        signature = len(mine.states), mine.step, mine.waits_in
        if signature != self._published:
            self._published = signature
            self._writer.annotate(**{REPLICA: json.dumps(mine.to_json())})
        begun = time.perf_counter()
        if self._siblings is not None and begun >= self._next_look:
            self._compare(mine, self._siblings)
            now = time.perf_counter()
            self._next_look = now + RESTS * (now - begun)

    def prepare_last_look(self) -> None:
        """Read the other ranks once more as the run ends, and compare them at the next look."""
        self._next_look = 0.0
        if self._siblings is not None and self._published is not None:
            self._siblings.last_look(_other_ranks())

    def _compare(self, mine: Replica, siblings: Siblings) -> None:
        siblings.look(_other_ranks())
        for rank in _other_ranks():
            self._read(rank, siblings)
        for kind in ("dtypes", "rates", "weights"):
            found = {
                rank: one
                for rank, other in self._others.items()
                for one in differences(mine, other.replica, rank)
                if one.kind == kind
            }
            if found:
                self._say_difference(mine, found)
        for rank, other in self._others.items():
            self._say_still(mine, rank, other, siblings)
        self._say_deadlock(mine, siblings)

    def _read(self, rank: int, siblings: Siblings) -> None:
        """Read what another rank has published; one that has no record yet says nothing."""
        root = siblings.changed(rank)
        if root is None:
            return
        try:
            attrs: dict[str, Any] = json.loads(root)["attributes"]
            other = Replica.from_json(json.loads(attrs[REPLICA]))
        except (ValueError, KeyError, TypeError):  # of another version
            return
        if not other.states or other.since < self._began:  # of an earlier job, as yet
            return
        since = max(other.since, self._now()) if siblings.late_s else other.since
        self._others[rank] = _KnownRank(other, attrs.get("state") == "closed", since)

    def _say_difference(self, mine: Replica, found: dict[int, RankDifference]) -> None:
        first = min(found.values(), key=lambda one: one.step)
        if first.kind in self._known:
            return
        why = {
            "dtypes": f"weights are {first.text}; convert the model before it is distributed, in "
            f"the same way on each rank",
            "rates": f"the learning rate is {first.text}; give schedulers numbers that are the "
            f"same on each rank, such as a loss after all_reduce()",
            "weights": f"{first.text} differ: {self._why(mine, first)}",
        }[first.kind]
        self._known.add(first.kind)
        ranks = ", ".join(map(str, [0, *found]))
        words = {"ranks": ranks, "what": why}
        self._findings.say("ranks_differ", first.step, first.modules, words=words)

    def _why(self, mine: Replica, first: RankDifference) -> str:
        """Return the possible causes of weights that differ."""
        if first.step == mine.states[0].step:
            return FROM_THE_START
        if "rates" in self._known:
            return "the learning rates do, too"
        replicas = [mine, *(one.replica for one in self._others.values())]
        called = [one.has_called_wrapper for one in replicas]
        if all(called):
            return CHANGED_ALONE
        return BYPASSED if False in called else f"{BYPASSED}; or {CHANGED_ALONE}. {TO_TELL}"

    def _say_still(self, mine: Replica, rank: int, other: _KnownRank, siblings: Siblings) -> None:
        """Report a rank that is behind and no longer moves."""
        its_step = other.replica.step
        behind = mine.step - its_step
        if behind <= other.has_closed:  # the last step of a run that has ended is closed
            return
        # One step is no sign before rank 0 has been in it for long: steps may take minutes.
        since = max(other.since, mine.since) if behind == 1 else other.since
        quiet_s = self._now() - since - siblings.late_s
        is_here = other.replica.host == mine.host
        if other.has_closed:
            what = ENDED
        elif quiet_s > GONE_S and is_here and not siblings.has_writer(rank):
            what = GONE
        elif quiet_s > self._findings.threshold("rank_stands_still", "seconds"):
            what = STANDS.format(quiet_s)
        else:
            return
        if rank not in self._still:
            self._still.add(rank)
            words = {"rank": rank, "its_step": its_step, "what": what}
            self._findings.forget("rank_stands_still")  # each rank is one
            self._findings.say("rank_stands_still", mine.step, since=its_step, words=words)

    def _say_deadlock(self, mine: Replica, siblings: Siblings) -> None:
        """Report ranks that have long been in one step, each in another collective, and stay."""
        replicas = {0: mine} | {rank: one.replica for rank, one in self._others.items()}
        is_known = len(replicas) == len(_other_ranks()) + 1 > 1
        if not is_known or {one.step for one in replicas.values()} != {mine.step}:
            return
        since = max(mine.since, *[one.since for one in self._others.values()])
        text = deadlock_text({rank: one.waits_in for rank, one in replicas.items()})
        now = self._now()
        if (mine.step, text) != self._waiting[0]:
            self._waiting = (mine.step, text), now
        is_steady = now - self._waiting[1] - siblings.late_s > STEADY_S
        quiet_s = now - since - siblings.late_s
        if text and is_steady and quiet_s > self._findings.threshold(DEADLOCK, "seconds"):
            words = {"seconds": f"{quiet_s:.0f}", "where": text}
            self._findings.say(DEADLOCK, mine.step, words=words)


def _other_ranks() -> range:
    return range(1, torch.distributed.get_world_size() if is_distributed() else 1)
