"""A trainer whose steps are units of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.errors import NoChangeError, ParamError, TrainingError
from notebook_probe.experiment.building.calling import arguments, placed
from notebook_probe.experiment.building.gradients import ByGradients
from notebook_probe.experiment.building.loss import ExperimentLoss
from notebook_probe.experiment.building.results import Targets, checked, merged
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.trainer.listener import Scheduler
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["TrainLoop", "UnitTrainer"]

Step = Callable[[Iterable[Mapping[str, Any]]], "dict[str, Any]"]
TrainLoop = Callable[..., Mapping[str, Any]]


class UnitTrainer(Trainer):
    """Trainer for batches that are dicts, with an optional user's function per unit.

    Parameters
    ----------
    model : nn.Module
    loss : ExperimentLoss
    pred_targets : names
        Keys of a batch that the model is not given unless it names them.
    optimizer : Optimizer
    scheduler : Scheduler
    num_minibatches : int
    targets : callable, optional
        ``targets(inputs, output)``, a dict of the results of a unit.
    train_loop : callable, optional
        ``train_loop(step, batches, num_minibatches=k)``, which calls ``step`` once.
    device : device, optional

    Attributes
    ----------
    results : dict
        Results of the last unit.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: ExperimentLoss,
        pred_targets: tuple[str, ...],
        optimizer: Optimizer,
        scheduler: Scheduler,
        num_minibatches: int = 1,
        targets: Targets | None = None,
        train_loop: TrainLoop | None = None,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(
            model, self._loss_of, optimizer, scheduler=scheduler, accumulate=num_minibatches
        )
        self._loss, self._pred_targets = loss, pred_targets
        self._targets, self._train_loop, self._where = targets, train_loop, device
        self.results: dict[str, Any] = {}
        self._of_minibatches: list[dict[str, Any]] = []

    def train_step_accumulated(self, batches: Iterable[Any]) -> Metrics[Value] | None:
        """Train one unit.

        Raises
        ------
        NoChangeError
            The user's function did not update.
        """
        minibatches = [placed(item.keywords, self._where) for item in batches]
        if self._train_loop is None:
            return self._step(minibatches)
        done: list[Metrics[Value] | None] = []

        def step(batches: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
            if done:
                raise TrainingError("train_loop['func'] called step twice; a unit is one update")
            metrics = self._step([placed(batch, self._where) for batch in batches])
            done.append(metrics)
            loss = None if metrics is None else metrics["loss"]
            return {"loss": loss, **self.results}

        found = self._train_loop(step, minibatches, num_minibatches=len(minibatches))
        if not done:
            raise NoChangeError(
                f"unit {self.global_step + 1}: train_loop['func'] did not call step, so that "
                f"nothing was updated"
            )
        return self._with_results(done[0], found)

    def item(self, batch: Mapping[str, Any]) -> Batch:
        """Return the batch in the loop's form: the model's inputs and the loss's values."""
        positional, named = arguments(self.model, batch, self._pred_targets)
        targets = self._loss.targets(batch)  # the first is what accuracies are measured by
        return Batch(None, positional, (targets[0] if targets else None, batch), named)

    def _step(self, batches: Sequence[Mapping[str, Any]]) -> Metrics[Value] | None:
        self._of_minibatches = []
        metrics = super().train_step_accumulated([self.item(batch) for batch in batches])
        self.results = merged(self._of_minibatches) if self._of_minibatches else {}
        return metrics

    def _with_results(self, metrics: Metrics[Value] | None, found: Any) -> Metrics[Value] | None:
        """Return the metrics, with the results of the user's function."""
        if metrics is None:
            return None
        if not isinstance(found, Mapping) or "loss" not in found:
            raise ParamError("train_loop['func'] is expected to return a dict with 'loss'")
        others = {name: value for name, value in found.items() if name != "loss"}
        self.results = checked(others, "train_loop['func']")
        loss = found["loss"]
        value = loss.detach().float().mean().item() if isinstance(loss, Tensor) else float(loss)
        return Metrics({**metrics, "loss": value})

    def _differentiate(self, loss: Tensor) -> None:
        if isinstance(self.optimizer, ByGradients):
            self.optimizer.compute_gradients(loss)
        else:
            super()._differentiate(loss)

    def _loss_of(self, output: Any, labels: Any) -> Tensor:
        _, batch = labels
        if self._targets is not None:
            found = self._targets(batch, output)
            self._of_minibatches.append(checked(found, "train_params['targets']"))
        return self._loss(output, batch)
