"""The null tool: how far from 1 a ratio is when nothing is measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.tool import Watched
from benchmarks.probe_sets import Probes
from benchmarks.workloads import Workload

__all__ = ["watch"]


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    return Watched(workload.step)
