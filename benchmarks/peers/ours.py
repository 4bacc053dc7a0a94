"""notebook_probe itself, with a record on disk as always."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import notebook_probe as nbp
from benchmarks.peers.tool import Watched, knows
from benchmarks.probe_sets import Probes
from benchmarks.workloads import Workload
from notebook_probe.quantities import quantities
from notebook_probe.run.attach.presets import Preset

__all__ = ["begin", "watch"]


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    knows(probes, list(quantities))
    run = begin(workload, probes, folder)
    return Watched(workload.step, run.close, lambda: run.status().cost_percent)


def begin(
    workload: Workload,
    probes: Probes | Preset | None,
    folder: Path,
    budget: float | None = None,
) -> nbp.Run:
    """A run in ``folder``; where it is recorded does not matter and would tear a table."""
    with redirect_stdout(io.StringIO()):
        return nbp.watch(
            workload.model, workload.optimizer, folder / "run.zarr", probes, budget=budget
        )
