"""Hugging Face: ``Trainer(callbacks=[WatchCallback()])``."""

from __future__ import annotations

from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched

with needs("transformers"):
    from transformers import TrainerCallback

__all__ = ["WatchCallback"]

SUMMARY = "train_runtime"
"""Key that identifies the trainer's summary of the whole training."""


class WatchCallback(TrainerCallback):
    """Records what the Trainer logs, and lets Pause, Step and Stop act between two steps.

    ``loss``, ``grad_norm`` and ``learning_rate`` are logged every ``logging_steps`` and recorded
    at the step that was trained last; by epoch they are, as evaluations are, of the state: their
    step is the number of updates completed, the Trainer's ``global_step``. Where ``grad_norm`` is
    measured of the whole model, what is logged is read as ``logged_grad_norm``. The summary of the
    training is kept in ``run.annotations``. Stop sets ``should_training_stop``, so that the
    Trainer ends the training. It has no hook for exceptions.

    Parameters
    ----------
    run : Run, optional
        Of a model that is watched already; else the Trainer's is, as training starts.
    **options
        Of `notebook_probe.watch`; with ``rank=None`` only the main process records.

    Attributes
    ----------
    run : Run or None
        None before training starts.

    Examples
    --------
    >>> Trainer(model, arguments, callbacks=[WatchCallback()]).train()  # doctest: +SKIP
    """

    def __init__(self, run: Run | None = None, **options: Any) -> None:
        self._watched = Watched(run, options)
        self._is_open = False
        """A step was trained and its boundary is not passed."""

    @property
    def run(self) -> Run | None:
        return self._watched.run

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        total = state.max_steps if state.max_steps > 0 else UNKNOWN
        is_main = state.is_world_process_zero
        self._watched.begin(objects["model"], state.global_step, total, is_main=is_main)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._watched.epoch(round(state.epoch or 0))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._is_open = control.should_log  # then it logs of this step first
        if not self._is_open:
            self._pass(control)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        values = {name: value for name, value in (logs or {}).items() if name != "epoch"}
        if SUMMARY in values:
            self._watched.annotate(values)
        elif self._is_open:
            self._is_open = False
            self._watched.trained(values)
            self._pass(control)
        else:
            self._watched.evaluated(values)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._watched.ended()

    def _pass(self, control: Any) -> None:
        if self._watched.is_stopped():
            control.should_training_stop = True
