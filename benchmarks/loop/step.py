"""`Trainer.train_step` beside the step as it is written by hand, with ``loss.item()``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from torch import Tensor

from benchmarks.loop.turns import cpu_s, in_turns
from benchmarks.small_workloads import SIZES
from benchmarks.table import Table
from benchmarks.workloads import Workload
from notebook_probe.train import Trainer

__all__ = ["run", "trained"]

STEPS = {"perceptron": 1.0, "tiny GPT": 0.05, "MLP": 0.02}
"""Of a turn, as a part of those that are asked for: the longer a step, the fewer."""


def run(chosen: argparse.Namespace) -> None:
    """Print a line per model."""
    print("a step by hand, with loss.item(), and by Trainer.train_step, CPU time\n")
    table = Table({"model": 10, "by hand us": 10, "Trainer us": 10, "ratio": 6})
    for name, share in STEPS.items():
        n = max(1, round(share * chosen.steps))
        low = in_turns({"hand": _by_hand(name, n), "ours": _ours(name, n)}, chosen.turns)
        hand, ours = (1e6 * low[kind] / n for kind in ("hand", "ours"))
        table.row(name, f"{hand:.0f}", f"{ours:.0f}", f"{ours / hand:.3f}")


def trained(
    workload: Workload,
    inputs: Tensor,
    targets: Tensor,
    backward: Callable[[Tensor], object] = Tensor.backward,
) -> float:
    """Train one step by hand; its loss."""
    workload.optimizer.zero_grad()
    loss = workload.loss_fn(workload.model(inputs), targets)
    backward(loss)
    workload.optimizer.step()
    return loss.item()


def _by_hand(model: str, n: int) -> Callable[[], float]:
    workload = SIZES[model]()

    def work() -> None:
        for _ in range(n):
            trained(workload, workload.inputs, workload.targets)

    return lambda: cpu_s(work)


def _ours(model: str, n: int) -> Callable[[], float]:
    workload = SIZES[model]()
    trainer = Trainer(workload.model, workload.loss_fn, workload.optimizer)

    def work() -> None:
        for _ in range(n):
            trainer.train_step((workload.inputs, workload.targets))

    return lambda: cpu_s(work)
