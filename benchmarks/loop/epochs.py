"""The same epoch by hand, by `Loop`, and by Lightning, ignite and accelerate where they are.

Each trains a model of its own over the same batches and has the loss of every step as a number, or
logged. Beginning and ending the epoch counts, making the trainer does not.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

from torch import Tensor
from torch.utils.data import DataLoader

from benchmarks.loop.step import trained
from benchmarks.loop.turns import cpu_s, in_turns
from benchmarks.peers.tool import Absent, installed
from benchmarks.small_workloads import SIZES
from benchmarks.table import Table
from benchmarks.workloads import Workload
from notebook_probe.train import Loop, Trainer

__all__ = ["run"]

Data: TypeAlias = DataLoader[tuple[Tensor, Tensor]]
Epoch: TypeAlias = Callable[[], object]

MODELS = {"perceptron": 1.0, "tiny GPT": 0.05}
"""And the steps of an epoch, as a part of those that are asked for."""


def run(chosen: argparse.Namespace) -> None:
    """Print a line per trainer, and in it the ratio for each model."""
    rows: dict[str, list[str]] = {name: [] for name in TRAINERS}
    for model, share in MODELS.items():
        ratios = _ratios(model, max(1, round(share * chosen.steps)), chosen.turns)
        for name, cell in ratios.items():
            rows[name].append(cell)
    print("CPU time of an epoch, as a ratio to the loop that is written by hand\n")
    table = Table({"trainer": 10, **dict.fromkeys(MODELS, 8)})
    for name, cells in rows.items():
        table.row(name, *cells)


def _ratios(model: str, n: int, turns: int) -> dict[str, str]:
    variants, found = {}, {}
    for name, trainer in TRAINERS.items():
        workload = SIZES[model]()
        batches: Any = [(workload.inputs, workload.targets)] * n
        try:
            epoch = trainer(workload, DataLoader(batches, batch_size=None))
        except Absent as absent:
            found[name] = str(absent)
            continue
        variants[name] = _timed(epoch)
    low = in_turns(variants, turns)
    return {**found, **{name: f"{low[name] / low['by hand']:.3f}" for name in variants}}


def _timed(epoch: Epoch) -> Callable[[], float]:
    return lambda: cpu_s(epoch)


def _by_hand(workload: Workload, data: Data) -> Epoch:
    def epoch() -> None:
        for inputs, targets in data:
            trained(workload, inputs, targets)

    return epoch


def _ours(workload: Workload, data: Data) -> Epoch:
    trainer = Trainer(workload.model, workload.loss_fn, workload.optimizer)
    return lambda: Loop(trainer, progress=False).run_epochs(data, 1)


def _lightning(workload: Workload, data: Data) -> Epoch:
    lightning: Any = installed("lightning")
    base: Any = lightning.LightningModule
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(base):
        def __init__(self) -> None:
            super().__init__()
            self.model = workload.model

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Any:
            loss = workload.loss_fn(self.model(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return workload.optimizer

    module = Module()

    def epoch() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a loader without workers
            lightning.Trainer(
                accelerator="cpu",
                max_epochs=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            ).fit(module, data)

    return epoch


def _ignite(workload: Workload, data: Data) -> Epoch:
    engine = installed("ignite.engine")

    def update(_: object, batch: tuple[Tensor, Tensor]) -> float:
        return trained(workload, *batch)

    trainer = engine.Engine(update)
    return lambda: trainer.run(data, max_epochs=1)


def _accelerate(workload: Workload, data: Data) -> Epoch:
    accelerator = installed("accelerate").Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(workload.model, workload.optimizer)
    prepared = Workload(model, optimizer, workload.inputs, workload.targets, workload.loss_fn)

    def epoch() -> None:
        for inputs, targets in data:
            trained(prepared, inputs, targets, accelerator.backward)

    return epoch


TRAINERS: dict[str, Callable[[Workload, Data], Epoch]] = {
    "by hand": _by_hand,
    "Loop": _ours,
    "Lightning": _lightning,
    "ignite": _ignite,
    "accelerate": _accelerate,
}
