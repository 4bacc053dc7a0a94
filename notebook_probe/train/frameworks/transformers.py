"""Hugging Face: ``Trainer(callbacks=[WatchCallback()])``, or ``report_to="notebook_probe"``.

Importing this module makes the word known to transformers; ``nbp run`` does so by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import nn

from notebook_probe.model.unwrapped import unwrap
from notebook_probe.run.run import Run
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched, harmless

with needs("transformers"):
    from transformers import TrainerCallback
    from transformers.integrations import INTEGRATION_TO_CALLBACK

__all__ = ["WORD", "ReportCallback", "WatchCallback"]

WORD = "notebook_probe"
"""Value of ``report_to``."""

SUMMARY = "train_runtime"
"""Key that identifies the trainer's summary of the whole training."""


class WatchCallback(TrainerCallback):
    """Records what the Trainer logs, and lets Pause, Step and Stop act between two steps.

    ``loss``, ``grad_norm`` and ``learning_rate`` are logged every ``logging_steps`` and recorded
    at the step that was trained last; by epoch they are, as evaluations are, of the state: their
    step is the number of updates completed, the Trainer's ``global_step``. Where ``grad_norm`` is
    measured of the whole model, what is logged is read as ``logged_grad_norm``. The summary of the
    training is kept in ``run.annotations``, and all arguments, the model's and its adapters'
    configuration in ``run.config``, without tokens. Stop sets ``should_training_stop``, so that the
    Trainer ends the training. It has no hook for exceptions. A model that cannot be watched is
    trained nevertheless, with a warning.

    Parameters
    ----------
    run : Run, optional
        Run of a model that is already watched. By default the Trainer's model is watched as
        training starts.
    **options
        Options of `notebook_probe.watch`; with ``rank=None`` only the main process records.

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
        model, is_main = objects["model"], state.is_world_process_zero
        total = state.max_steps if state.max_steps > 0 else UNKNOWN
        with harmless("not watched"):
            self._watched.begin(model, state.global_step, total, is_main=is_main)
        config: dict[str, Any] = {}
        inner = unwrap(model)
        for settings, owner in ((_arguments, args), (_of_model, inner), (_of_adapters, inner)):
            with harmless("a part of the configuration is not recorded"):
                config |= settings(owner)
        with harmless("the configuration is not recorded"):
            self._watched.configure(config)

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


class ReportCallback(WatchCallback):
    """The callback of ``TrainingArguments(report_to="notebook_probe")``.

    A run that watches the model already, such as that of ``nbp run`` or of `notebook_probe.watch`,
    is the one that records; else one begins in a new folder below ``runs/``, with the Trainer's
    ``run_name``.

    Parameters
    ----------
    config : mapping, optional
        Further settings to record.

    Examples
    --------
    >>> import notebook_probe.train.frameworks.transformers  # doctest: +SKIP
    >>> TrainingArguments("out", report_to="notebook_probe")  # doctest: +SKIP
    """

    def __init__(self, config: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__()
        self._watched.joins = True
        self._config = config

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        self._watched.options["name"] = getattr(args, "run_name", None)
        super().on_train_begin(args, state, control, **objects)
        with harmless("a part of the configuration is not recorded"):
            self._watched.configure(self._config)


def _arguments(args: Any) -> dict[str, Any]:
    # Batch size of all devices of a process, and number of processes.
    of_all = {name: getattr(args, name, None) for name in ("train_batch_size", "world_size")}
    return {**args.to_dict(), **of_all}


def _of_model(model: nn.Module) -> dict[str, Any]:
    own: Any = getattr(model, "config", None)
    config = own.to_dict() if hasattr(own, "to_dict") else {}
    return {"model": {"class": type(model).__name__, **config}}


def _of_adapters(model: nn.Module) -> dict[str, Any]:
    adapters = getattr(model, "peft_config", None)
    known = adapters if isinstance(adapters, Mapping) else {}
    return {"peft": {name: one.to_dict() for name, one in known.items()}} if known else {}


INTEGRATION_TO_CALLBACK.setdefault(WORD, ReportCallback)
