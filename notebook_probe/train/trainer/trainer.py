"""One step of training, or an evaluation, of a model with its loss and optimizer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.model.unwrapped import unwrap
from notebook_probe.train.collector.optimizer_series import (
    OPTIMIZER_GRADS_L2_COLLECTOR,
    TRAINER_LOG_STEP_SIZE_L2_COLLECTOR,
    OptimizerSeries,
)
from notebook_probe.train.data.batch import Batch, Device, check_batches, check_one_batch, read_item
from notebook_probe.train.data.dataset import for_evaluation
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.metrics.user_metrics import MetricsLike, UserMetrics
from notebook_probe.train.trainer.clipping import Clipping, OnNonfinite
from notebook_probe.train.trainer.eval_totals import EvalTotals
from notebook_probe.train.trainer.evaluation import evaluating
from notebook_probe.train.trainer.executors import Executors, Mode
from notebook_probe.train.trainer.forward import Forward, LossFn, Passed
from notebook_probe.train.trainer.given import check_given, read_context
from notebook_probe.train.trainer.listener import KnobOfTrainer, Scheduler, TrainerListener
from notebook_probe.train.trainer.minibatches import check_scaler, taking_minibatches
from notebook_probe.train.trainer.moments import Moments
from notebook_probe.train.trainer.options import SetByHand
from notebook_probe.train.trainer.reports import Reports
from notebook_probe.train.trainer.update import StepCalls, parameters_of, update
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Trainer"]

COLLECTORS = {OPTIMIZER_GRADS_L2_COLLECTOR, TRAINER_LOG_STEP_SIZE_L2_COLLECTOR}


class Trainer:
    """One training step: forward, loss, backward, update, metrics.

    Parameters
    ----------
    model : nn.Module
    loss_fn : callable or None
        ``loss_fn(prediction, label)``; the label is a tuple if a batch has several labels, and
        missing if it has none. A loss that is not a single number is averaged. None if the model
        adds its losses by `add_loss`.
    optimizer : Optimizer
    train_metrics, eval_metrics : dict or list of metrics
        Objects of torchmetrics, or functions ``(prediction, label) -> number``.
    scheduler : learning rate scheduler, optional
        Scheduler that is stepped after every update.
    accumulate : int
        Number of batches per update; the loss is their mean, also for a short last group.
    clip : float, optional
        Maximum norm, to which gradients are scaled before the update.
    autocast : torch.dtype, optional
        Type of the autocast under which the model runs, such as ``torch.bfloat16``.
    scaler : torch.amp.GradScaler, optional
        Gradient scaler. An update that it skips does not count as a step, and is not reported.
    context : dict, optional
        Your hyperparameters, see `context`.
    labels_first : bool
        True to call ``loss_fn([labels], [predictions])``.
    on_nonfinite : "raise" or "skip"
        Action if gradients cannot be clipped.
    max_executors : int or None
        Maximum number of kinds of batches, which differ in their spec.

    Attributes
    ----------
    training, evaluation : Moments
        Moments at which steps of training and of evaluation begin and end.
    listener : TrainerListener or None
        Object that gets the labels and losses of each batch, and knobs.
    knobs : dict
        Numbers that can be set while it trains.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> trainer = Trainer(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    >>> metrics = trainer.train_step((torch.ones(4, 2), torch.ones(4, 1)))
    >>> [*metrics]
    ['loss', 'loss_moving', 'fn_loss_moving']
    """

    def __init__(
        self,
        model: nn.Module,
        loss_fn: LossFn | None,
        optimizer: Optimizer,
        train_metrics: MetricsLike = (),
        eval_metrics: MetricsLike = (),
        scheduler: Scheduler | None = None,
        accumulate: int = 1,
        clip: float | None = None,
        autocast: torch.dtype | None = None,
        scaler: Any = None,
        context: Mapping[str, Any] | None = None,
        *,
        labels_first: bool = False,
        on_nonfinite: OnNonfinite = "raise",
        max_executors: int | None = 20,
    ) -> None:
        check_given(model, loss_fn, optimizer, scheduler, accumulate)
        check_scaler(scaler, optimizer)
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.scaler, self.accumulate = scaler, accumulate
        self.context: dict[str, Any] = {}
        self._series: OptimizerSeries | None = None
        self.training, self.evaluation = Moments(model), Moments(model)
        self.listener: TrainerListener | None = None
        self.knobs: dict[str, KnobOfTrainer] = {}
        self.train_metrics = UserMetrics(train_metrics, "train_metrics")
        self.eval_metrics = UserMetrics(eval_metrics, "eval_metrics")
        self._totals = EvalTotals(self.eval_metrics)
        self._loss_fn, self._labels_first = loss_fn, labels_first
        self._forward = Forward(model, loss_fn, labels_first)
        self._clip = None if clip is None else Clipping(clip, on_nonfinite)
        self._autocast = autocast
        self._executors = Executors(max_executors)
        self._device: torch.device | None = None
        self._updates: dict[str, Callable[[], Any]] = {}
        self._reports = Reports(self.train_metrics)
        self._calls = StepCalls()
        if scaler is not None:
            optimizer.register_step_post_hook(self._calls)
        self.set_context(context or {})

    # ---------------------------------------------------------------- setting up

    @property
    def global_step(self) -> int:
        """Updates completed; set when continuing from a checkpoint."""
        return self.training.step

    @global_step.setter
    def global_step(self, step: int) -> None:
        self.training.step = self.evaluation.step = step

    @property
    def loss_fn(self) -> LossFn | None:
        """The given loss function; None if the model adds all terms itself."""
        return self._loss_fn

    def in_device(self, device: Device) -> Trainer:
        """Move the model, metrics and batches to a device. Return the trainer."""
        self._device = torch.device(device)
        self.model.to(self._device)
        self.train_metrics.to(self._device)
        self.eval_metrics.to(self._device)
        return self

    def set_context(self, context: Mapping[str, Any]) -> Trainer:
        """Replace the hyperparameters. Returns the trainer.

        A `DataCollector` under ``"optimizer_grads_l2_collector"`` or
        ``"trainer_log_step_size_l2_collector"`` is given what the optimizer does.
        """
        given = read_context(context)  # which may be our own
        self.context.clear()
        self.context.update(given)
        if self._series is None and self.context.keys() & COLLECTORS:
            self._series = OptimizerSeries(self.model, self.context)
        return self

    def on_first_use(self, handler: Callable[[nn.Module, Mode], None]) -> None:
        """Call ``handler(model, "train" or "eval")`` before the first batch of each new kind."""
        self._executors.tell(handler)

    on_exec_creation = on_first_use

    def knob(
        self,
        name: str,
        get: Callable[[], float],
        set: Callable[[Any], object],
        low: float | None = None,
        high: float | None = None,
        log: bool = False,
    ) -> None:
        """Register a number that can be set during training; see `Run.knob`.

        A loop that is recorded later offers it, too.
        """
        knob = KnobOfTrainer(name, get, set, low, high, log)
        self.knobs[name] = knob
        if self.listener is not None:
            self.listener.knob(knob)

    def add_per_step_update(self, update: Callable[[], Any], scope: str = "/") -> None:
        """Call ``update()`` after every update, without gradients and before metrics.

        Use it for averages of weights, constraints and codebooks. Each ``scope`` has one function:
        another one replaces it.
        """
        if not callable(update):
            raise TypeError(f"add_per_step_update({update!r}): a function is expected")
        self._updates[scope] = update

    def twin(self) -> Trainer:
        """Return a trainer of copies of the model and the optimizer, without metrics and schedules.

        Training it does not change this trainer.
        """
        model, optimizer, scaler = copy.deepcopy((self.model, self.optimizer, self.scaler))
        twin = Trainer(
            model,
            self._loss_fn,
            optimizer,
            accumulate=self.accumulate,
            autocast=self._autocast,
            scaler=scaler,
            labels_first=self._labels_first,
            max_executors=None,
        )
        twin._clip, twin._device = self._clip, self._device
        return twin

    # ---------------------------------------------------------------- training

    def train_step(self, batch: Any) -> Metrics[Value] | None:
        """Update once from one batch; return the reported numbers of `train_step_accumulated`.

        Raises
        ------
        TypeError
            The argument is a list of several batches.
        """
        check_one_batch("train_step(batch)", batch, "train_step_accumulated(batches)")
        return self.train_step_accumulated([batch])

    def train_step_accumulated(self, batches: Iterable[Any]) -> Metrics[Value] | None:
        """Update once from the gradients of several batches; return the reported numbers.

        Parameters
        ----------
        batches : list of batches
            Batches whose mean loss is differentiated, regardless of `accumulate`. A single batch
            raises TypeError.

        Returns
        -------
        dict or None
            ``loss`` (with all terms), ``loss_moving``, ``fn_loss_moving`` and the metrics of the
            user; numbers, or tensors on an accelerator. None if no update happened: a scaler or the
            optimizer has skipped it, or its gradients were left out.
        """
        check_batches("train_step_accumulated(batches)", batches)
        if not self.model.training:
            self.model.train()
        self.training.begin()
        self.optimizer.zero_grad(set_to_none=True)
        passed = self._backward([*batches])
        with uninterrupted:  # what changes the weights is counted, whenever an interrupt comes
            is_updated = update(self.optimizer, self.scaler, self._clip, self._calls)
            return self._completed(passed) if is_updated else None

    def reset_train_metrics(self) -> None:
        """Reset averages and metrics."""
        self._reports.reset()

    def _completed(self, passed: list[Passed]) -> Metrics[Value]:
        """Complete a step whose update has happened; return the reported numbers."""
        if self.scheduler is not None:
            self.scheduler.step()
        with torch.no_grad():
            for of_scope in self._updates.values():
                of_scope()
        metrics = self._reports.add(passed)
        self.training.end()
        self.global_step += 1
        return metrics

    def _backward(self, group: Sequence[Any]) -> list[Passed]:
        size, done = len(group), []
        takes = taking_minibatches(self.optimizer) if size > 1 else None
        for item in group:
            batch = self._placed(item)  # one at a time, as accumulation is to save memory
            self._executors.use(self.model, "train", batch.spec)
            listener = self.listener
            if listener is not None and batch.labels and isinstance(batch.labels[0], Tensor):
                listener.batch(targets=batch.labels[0])
            with self._casting():
                passed = self._forward(batch)
            if listener is not None and passed.each is not None:
                listener.batch(losses=passed.each)
            # Gradients of the batches add up; their mean needs a part of each loss.
            loss = passed.total if size == 1 or takes else passed.total / size
            self._differentiate(loss if self.scaler is None else self.scaler.scale(loss))
            if takes is not None:
                takes.accumulate_gradients(size)
            done.append(passed)
        return done

    def _differentiate(self, loss: Tensor) -> None:
        loss.backward()

    # ---------------------------------------------------------------- evaluating

    def eval(self, data: Any) -> Metrics[float]:
        """Return means over the data: ``loss`` with all terms, ``fn_loss``, and the user's metrics.

        Losses are weighted by the size of their batches. The data and the metrics are reset; the
        model's modes and buffers, and the random generators, are restored.

        Raises
        ------
        ValueError
            The data is empty.
        """
        data = for_evaluation(data)
        data.reset()
        self.reset_eval_metrics()
        with evaluating(self.model):
            for batch in data:
                self._evaluate(batch)
            if not self._totals.n_batches:
                raise ValueError(f"data {data.name!r} is empty: nothing to evaluate")
            return self._totals.values()

    def eval_step(self, batch: Any) -> Metrics[float]:
        """Evaluate one more batch, ``(inputs, labels)``; return means since the last reset.

        `eval` and `reset_eval_metrics` reset the means. Otherwise same as `eval`.
        """
        with evaluating(self.model):
            self._evaluate(read_item(batch))
            return self._totals.values()

    def reset_eval_metrics(self) -> None:
        """Reset the means and metrics of `eval_step`."""
        self._totals.reset()

    def metrics(self) -> UserMetrics:
        """Return the metrics of evaluations."""
        return self.eval_metrics

    def _evaluate(self, batch: Batch) -> None:
        self.evaluation.begin()
        batch = self._placed(batch)
        self._executors.use(self.model, "eval", batch.spec)
        with self._casting():
            self._totals.add(self._forward(batch))
        self.evaluation.end()

    # ---------------------------------------------------------------- continuing later

    def state_dict(self) -> dict[str, Any]:
        """Return the states of model, optimizer, scheduler, scaler, averages and metrics."""
        return {name: part.state_dict() for name, part in self._stateful().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        for name, part in self._stateful().items():
            part.load_state_dict(state[name])

    def load_weights(self, state: Mapping[str, Any]) -> None:
        """Load the given weights and buffers of the model."""
        unwrap(self.model).load_state_dict(state, strict=False)

    def _stateful(self) -> dict[str, Any]:
        parts = {
            "model": unwrap(self.model),
            "optimizer": self.optimizer,
            "options": SetByHand(self.optimizer),
            "scheduler": self.scheduler,
            "scaler": self.scaler,
            "averages": self._reports,
            "train_metrics": self.train_metrics,
        }
        return {name: part for name, part in parts.items() if hasattr(part, "state_dict")}

    # ---------------------------------------------------------------- inside

    def _placed(self, item: Any) -> Batch:
        batch = item if isinstance(item, Batch) else read_item(item)
        return batch if self._device is None else batch.to(self._device)

    def _casting(self) -> AbstractContextManager[Any]:
        if self._autocast is None:
            return nullcontext()
        device = self._device or next(parameters_of(self.optimizer)).device
        return torch.autocast(device.type, dtype=self._autocast)
