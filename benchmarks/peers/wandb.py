"""Weights & Biases, offline: hand-written hooks and `log`; `watch(log="all")` for P3.

Its service is a child process, whose CPU time shows when it has ended.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.peers import hooks
from benchmarks.peers.tool import Watched, installed, knows
from benchmarks.probe_sets import Probes, quantities_of
from benchmarks.workloads import Workload

__all__ = ["watch"]

os.environ["WANDB_MODE"] = "offline"
os.environ["WANDB_SILENT"] = "true"
os.environ["WANDB_ERROR_REPORTING"] = "false"


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    knows(probes, (*hooks.QUANTITIES, "weight_histogram", "grad_histogram"))
    wandb = installed("wandb")
    settings = wandb.Settings(silent=True, console="off")
    run = wandb.init(mode="offline", dir=str(folder), project="benchmarks", settings=settings)
    if "weight_histogram" in quantities_of(probes):
        run.watch(workload.model, log="all", log_freq=1)
    measured = hooks.Hooks(workload.model, probes)

    def after_backward() -> None:
        measured.read_parameters()
        run.log(measured.values)

    def close() -> None:
        measured.remove()
        run.unwatch(workload.model)
        run.finish()
        wandb.teardown()

    return Watched(lambda: workload.step(after_backward), close)
