"""Ranks of a job, which have a record each, listed as one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from notebook_probe.catalogues.documents import rank_of

__all__ = ["as_jobs", "with_ranks"]

Row = Mapping[str, Any]


def as_jobs(rows: Iterable[Row], places: Iterable[str]) -> list[Row]:
    """Merge the ranks of each job to the row of its first known rank, at the job's location.

    Examples
    --------
    >>> places = ["r/job/rank_00000", "r/job/rank_00001", "r/alone"]
    >>> as_jobs([{"run": place, "loss": n} for n, place in enumerate(places)], places)
    [{'run': 'r/job', 'loss': 0, 'ranks': 2}, {'run': 'r/alone', 'loss': 2}]
    """
    told = [(row, rank_of(str(row["run"]))) for row in rows]
    jobs = _jobs(places) if any(own for _, own in told) else {}
    found: list[Row] = []
    for row, own in told:
        if own is None:
            found.append(row)
        elif own[1] == min(jobs[own[0]]):
            rest = {name: one for name, one in row.items() if name != "rank"}
            found.append({**rest, "run": own[0], "ranks": len(jobs[own[0]])})
    return found


def with_ranks(rows: Iterable[Row], places: Iterable[str]) -> list[Row]:
    """Every record, and of how many ranks it is one.

    Examples
    --------
    >>> places = ["r/job/rank_00000", "r/job/rank_00001"]
    >>> with_ranks([{"run": places[1], "rank": 1}], places)
    [{'run': 'r/job/rank_00001', 'rank': 1, 'ranks': 2}]
    """
    jobs = _jobs(places)
    told = ((row, rank_of(str(row["run"]))) for row in rows)
    return [row if own is None else {**row, "ranks": len(jobs[own[0]])} for row, own in told]


def _jobs(places: Iterable[str]) -> dict[str, set[int]]:
    """Return the ranks of each job; a rank seen by several machines counts once."""
    jobs: dict[str, set[int]] = {}
    for place in places:
        found = rank_of(place)
        if found is not None:
            jobs.setdefault(found[0], set()).add(found[1])
    return jobs
