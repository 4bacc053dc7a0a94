"""`Loop.run_steps` beside a bare Python loop that calls the same trainer, without hooks or a run.

The trainer's step does nothing, so that the difference is not lost in what a real one takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from benchmarks.loop.turns import cpu_s, in_turns
from benchmarks.table import Table
from notebook_probe.train import Loop, Trainer
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics

__all__ = ["run"]

LIMIT_US = 5.0


class _Idle(Trainer):
    def __init__(self) -> None:
        model = nn.Linear(1, 1)
        super().__init__(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
        self._reported = Metrics[Value](loss=0.5)

    def train_step_accumulated(self, batches: Iterable[Any]) -> Metrics[Value]:
        self.global_step += 1
        return self._reported


def run(chosen: argparse.Namespace) -> None:
    """Print microseconds per step of both."""
    trainer, one = _Idle(), torch.ones(1)
    n = 10 * chosen.steps
    data = [(one, one)] * n

    def bare() -> None:
        for batch in data:
            trainer.train_step(batch)

    def ours() -> None:
        Loop(trainer, progress=False).run_steps(data, n)

    variants = {"bare": lambda: cpu_s(bare), "Loop": lambda: cpu_s(ours)}
    low = {name: 1e6 * seconds / n for name, seconds in in_turns(variants, chosen.turns).items()}
    added = low["Loop"] - low["bare"]
    print("us per step whose trainer does nothing, CPU time\n")
    table = Table({"bare": 6, "Loop": 6, "added": 6, "target": 6, "met": 3})
    met = "yes" if added <= LIMIT_US else "NO"
    table.row(f"{low['bare']:.2f}", f"{low['Loop']:.2f}", f"{added:.2f}", f"<= {LIMIT_US:g}", met)
