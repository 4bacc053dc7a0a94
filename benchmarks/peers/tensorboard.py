"""TensorBoard: hand-written hooks, `add_scalar` for each number, `add_histogram` for P3.

Histograms have 64 bins like everybody's here; its own default has over 1,500 and costs 4 times
as much.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from benchmarks.peers import hooks
from benchmarks.peers.tool import Watched, installed, knows
from benchmarks.probe_sets import Probes, places
from benchmarks.workloads import Workload

__all__ = ["watch"]


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    knows(probes, (*hooks.QUANTITIES, "weight_histogram", "grad_histogram"))
    writer = installed("torch.utils.tensorboard").SummaryWriter(str(folder))
    measured = hooks.Hooks(workload.model, probes)
    in_full = places(workload.model, probes, "weight_histogram")
    steps = count()

    def after_backward() -> None:
        step = next(steps)
        measured.read_parameters()
        for tag, value in measured.values.items():
            writer.add_scalar(tag, value, step)
        for path, module in in_full.items():
            weight = module.get_parameter("weight")
            writer.add_histogram(f"weight/{path}", weight, step, bins=64)
            writer.add_histogram(f"grad/{path}", weight.grad, step, bins=64)

    def close() -> None:
        measured.remove()
        writer.close()

    return Watched(lambda: workload.step(after_backward), close)
