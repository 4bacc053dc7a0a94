"""A training loop that hands a run all that quantities may ask of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import repeat

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import notebook_probe as nbp
from benchmarks.workloads import Workload

__all__ = ["Loop", "loop"]

Batch = tuple[Tensor, Tensor, Tensor]
"""Inputs, targets and which predictions they are."""


@dataclass(frozen=True)
class Loop:
    """One workload's training under a run.

    Parameters
    ----------
    n_micro : int
        Backward passes in a step, each of a part of the batch.
    scaler : GradScaler, optional
    """

    workload: Workload
    run: nbp.Run
    batches: Iterator[Batch]
    with_losses: bool
    n_micro: int = 1
    scaler: torch.amp.GradScaler | None = None

    def step(self) -> None:
        """Train one step."""
        inputs, targets, indices = next(self.batches)
        self.workload.optimizer.zero_grad()
        parts = (each.chunk(self.n_micro) for each in (inputs, targets, indices))
        for part in zip(*parts, strict=True):
            loss = self._loss(*part) / self.n_micro
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self._update()
        self.run.log(loss=loss.detach(), eval_loss=loss.detach())

    def _loss(self, inputs: Tensor, targets: Tensor, indices: Tensor) -> Tensor:
        flags = {"mask": indices > 0, "truncated": indices == 0}
        self.run.batch(targets=targets, indices=indices, buckets=indices % 10, **flags)
        outputs = self.workload.model(inputs)
        if not self.with_losses:
            return self.workload.loss_fn(outputs, targets)
        losses = cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")
        self.run.batch(losses=losses)
        return losses.mean()

    def _update(self) -> None:
        if self.scaler is None:
            self.workload.optimizer.step()
        else:
            self.scaler.step(self.workload.optimizer)
            self.scaler.update()


def loop(workload: Workload, run: nbp.Run, needs: Collection[str]) -> Loop:
    """The plainest loop in which there is what is needed."""
    inputs, targets = workload.inputs, workload.targets
    if {"probe_output", "landscape"} & {*needs}:
        run.probe_batch(inputs, targets, workload.loss_fn)
    indices = torch.arange(targets.numel()).view_as(targets)  # a text has one of each per token
    scales = bool({"scaler", "loss_scale"} & {*needs})
    return Loop(
        workload,
        run,
        iter(run.batches(repeat((inputs, targets, indices)))),
        with_losses="batch.losses" in needs,
        n_micro=2 if "grad_micro" in needs else 1,
        scaler=torch.amp.GradScaler("cpu") if scales else None,
    )
