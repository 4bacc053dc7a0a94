"""fastai: ``Learner(..., cbs=[WatchCallback()])``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from notebook_probe.probes.step.optimizer_steps import step_begins, step_ended
from notebook_probe.run.run import Run
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched

with needs("fastai"):
    from fastai.callback.core import Callback, CancelFitException

__all__ = ["WatchCallback"]

BEHIND_ALL = 90
"""Order of the callback: behind those that clip, schedule, score and report."""


class WatchCallback(Callback):
    """Records what a Learner trains, and lets Pause, Step and Stop act between two batches.

    ``train_loss`` is the loss of each step. The Recorder's values of an epoch, ``valid_loss`` and
    the metrics, describe the state at its end: their step is the number of updates completed; the
    smoothed loss is called ``epoch_train_loss`` there. Steps of fastai's own optimizers, of which
    torch knows nothing, are announced as those of torch's are. `lr_find` is not recorded. Stop ends
    `fit` as ``CancelFitException`` does: it returns.

    Parameters
    ----------
    run : Run, optional
        Run of a model that is already watched. By default the Learner's model is watched as
        training starts.
    **options
        Options of `notebook_probe.watch`.

    Attributes
    ----------
    watched_run : Run or None
        None before training starts. fastai uses the name ``run`` for a switch.

    Examples
    --------
    >>> Learner(loaders, model, cbs=[WatchCallback()]).fit(2)  # doctest: +SKIP
    """

    order = BEHIND_ALL
    remove_on_fetch = True  # as predictions are no training
    _stateattrs = ("_watched", "_announced")

    def __init__(self, run: Run | None = None, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._watched = Watched(run, options)
        self._announced: _AnnouncedSteps | None = None
        self._has_stepped = False

    def _init_state(self) -> None:
        """Begin without a run, as a copy of a Learner that is saved."""
        self._watched, self._announced = Watched(None, self._options), None

    @property
    def watched_run(self) -> Run | None:
        return self._watched.run

    def before_fit(self) -> None:
        learner = self.learn
        if hasattr(learner, "lr_finder"):
            self.run = False  # until the end of this fit
            return
        if self._announced is None or self._announced.of is not learner.opt:
            self._announced = _announced(learner.opt)
        self._watched.begin(learner.model, 0, learner.n_epoch * len(learner.dls.train))
        self._watched.configure(_settings(learner))

    def before_epoch(self) -> None:
        self._watched.epoch(self.learn.epoch)

    def before_step(self) -> None:
        self._has_stepped = True
        if self._announced is not None:
            self._announced.begin()

    def after_step(self) -> None:  # also of a step that another callback cancelled
        if self._announced is not None and self._has_stepped:
            self._announced.end()

    def after_batch(self) -> None:
        if self._has_stepped:  # else a batch adds to the gradients of the next ones
            self._has_stepped = False
            self._watched.trained({"train_loss": self.learn.loss.detach()})
            if self._watched.is_stopped():
                raise CancelFitException

    def after_epoch(self) -> None:
        recorder = getattr(self.learn, "recorder", None)
        if recorder is not None:
            found = dict(zip(recorder.metric_names[1:], self.learn.final_record, strict=False))
            if "train_loss" in found:
                # The name is that of the steps' losses, which are another series.
                found["epoch_train_loss"] = found.pop("train_loss")
            self._watched.evaluated(found)

    def after_fit(self) -> None:
        self._watched.ended()


def _settings(learner: Any) -> dict[str, Any]:
    return {
        "n_epoch": learner.n_epoch,
        "batch_size": learner.dls.train.bs,
        "loss": type(learner.loss_func).__name__,
        "model": {"class": type(learner.model).__name__},
        "optimizer": dict(learner.opt.hypers[-1]),
    }


def _announced(optimizer: Any) -> _AnnouncedSteps | None:
    """Return the announcer of an optimizer whose steps torch does not announce, or None."""
    inner = getattr(optimizer, "opt", None)  # of an OptimWrapper
    return None if isinstance(inner, torch.optim.Optimizer) else _AnnouncedSteps(optimizer)


class _AnnouncedSteps(torch.optim.Optimizer):
    """Announcer of the steps of fastai's own optimizer, with its parameters and options.

    Attributes
    ----------
    of : fastai.optimizer.Optimizer
    """

    def __init__(self, optimizer: Any) -> None:
        groups = [{"params": [*one]} for one in optimizer.param_lists]
        super().__init__(groups, dict(optimizer.hypers[-1]))
        self.of, self._hypers = optimizer, optimizer.hypers
        self.param_groups = [
            _GroupOfFastai(group["params"], hyper)
            for group, hyper in zip(self.param_groups, self._hypers, strict=True)
        ]

    def begin(self) -> None:
        """Announce that the optimizer of fastai takes a step."""
        for group, hyper in zip(self.param_groups, self._hypers, strict=True):
            dict.update(group, hyper)
        step_begins(self)

    def end(self) -> None:
        """Announce that it has taken it."""
        step_ended(self)


class _GroupOfFastai(dict[str, Any]):
    """A parameter group that sets its options in fastai's."""

    def __init__(self, params: list[torch.Tensor], hyper: dict[str, Any]) -> None:
        super().__init__(hyper, params=params)
        self._hyper = hyper

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name in self._hyper:
            self._hyper[name] = value

    def update(self, *values: Mapping[str, Any], **named: Any) -> None:  # type: ignore[override]
        for name, value in dict(*values, **named).items():
            self[name] = value
