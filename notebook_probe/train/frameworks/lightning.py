"""Lightning: ``Trainer(callbacks=[WatchCallback()])``, or ``logger=NotebookProbeLogger()``."""

from __future__ import annotations

import math
import time
import weakref
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched, harmless

with needs("lightning"):
    try:
        from lightning.pytorch.callbacks import Callback, Checkpoint
        from lightning.pytorch.loggers import Logger
    except ModuleNotFoundError:
        from pytorch_lightning.callbacks import Callback, Checkpoint
        from pytorch_lightning.loggers import Logger

__all__ = ["NotebookProbeLogger", "WatchCallback"]

SETTINGS = (
    "max_epochs",
    "max_steps",
    "accumulate_grad_batches",
    "gradient_clip_val",
    "gradient_clip_algorithm",
    "precision",
    "num_devices",
    "num_nodes",
    "val_check_interval",
)
"""Attributes of a Trainer that are recorded as ``config.trainer``."""


class WatchCallback(Callback):
    """Records what a LightningModule logs, and lets Pause, Step and Stop act between two batches.

    Values that `training_step` logs belong to its step. Values that are logged for an epoch or by a
    validation or test describe the state at that time: their step is the number of updates
    completed. Names are those of Lightning's loggers; settings and hyper-parameters are in
    ``run.config``. Stop sets ``trainer.should_stop``, so that Lightning ends the training,
    validates where it would, and obeys ``min_epochs`` and ``min_steps``.

    Parameters
    ----------
    run : Run, optional
        Run of a model that is already watched. By default the LightningModule is watched as
        training starts.
    **options
        Options of `notebook_probe.watch`; with ``rank=None`` only the main process records.

    Attributes
    ----------
    run : Run or None
        None before training starts.

    Examples
    --------
    >>> Trainer(callbacks=[WatchCallback()]).fit(module, loader)  # doctest: +SKIP
    >>> run = nbp.watch(module)  # doctest: +SKIP
    >>> Trainer(callbacks=[WatchCallback(run)]).fit(module, loader)  # doctest: +SKIP
    """

    def __init__(self, run: Run | None = None, **options: Any) -> None:
        self._watched = Watched(run, options)
        self._seen: dict[str, Any] = {}
        self._done = 0

    @property
    def run(self) -> Run | None:
        return self._watched.run

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        total = trainer.estimated_stepping_batches
        end = int(total) if 0 <= total < math.inf else UNKNOWN
        self._watched.begin(pl_module, trainer.global_step, end, is_main=trainer.is_global_zero)
        with harmless("the configuration is not recorded"):
            self._watched.configure(_settings(trainer, pl_module))
        self._done = trainer.global_step
        self._new(trainer)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._watched.evaluated(self._new(trainer))  # what the epoch before has left
        self._watched.epoch(trainer.current_epoch)
        self._look_for_stop(trainer)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if self._done != trainer.global_step:  # else it is a micro-batch
            self._done = trainer.global_step
            self._watched.trained(self._new(trainer))
            self._look_for_stop(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._new(trainer)  # of the last batch; the module has yet to log of the epoch

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._new(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self._watched.evaluated(self._new(trainer))

    on_test_start, on_test_end = on_validation_start, on_validation_end

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._watched.evaluated(self._new(trainer))
        self._watched.ended()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._watched.ended(exception)

    def _look_for_stop(self, trainer: Any) -> None:
        if self._watched.is_stopped():
            trainer.should_stop = True

    def _new(self, trainer: Any) -> dict[str, Any]:
        """Return new logged values: Lightning makes the values of a loop again.

        Looked at in every process, recording or not: Lightning may reduce over all of them.
        """
        seen, self._seen = self._seen, {**trainer.logged_metrics}
        # By identity, as a new value may equal the old one.
        return {name: value for name, value in self._seen.items() if value is not seen.get(name)}


class NotebookProbeLogger(Logger):
    """The logger of ``Trainer(logger=NotebookProbeLogger())``: it watches the model, too.

    As training starts it adds a `WatchCallback` to the trainer, if there is none: what ``self.log``
    passes on is recorded at every update, whatever ``log_every_n_steps`` is. Numbers that something
    hands to loggers directly, such as Lightning's `LearningRateMonitor`, are of the state: their
    step is the number of updates completed.

    Parameters
    ----------
    run : Run, optional
        Run of a model that is already watched. By default, without options, the run that already
        watches the LightningModule, such as the run of ``nbp run``; otherwise a new run begins.
    **options
        Options of `notebook_probe.watch`; with ``rank=None`` only the main process records.

    Attributes
    ----------
    experiment : Run or None
        The run, under Lightning's name; None before training starts.

    Examples
    --------
    >>> Trainer(logger=NotebookProbeLogger()).fit(module, loader)  # doctest: +SKIP
    """

    def __init__(self, run: Run | None = None, **options: Any) -> None:
        super().__init__()
        self._callback = WatchCallback(run, **options)
        self._callback._watched.joins = run is None and not options
        self._trainer: weakref.ref[Any] | None = None
        store = options.get("store")
        self._version = Path(str(store)).stem if store else time.strftime("%Y%m%d-%H%M%S")

    @property
    def name(self) -> str:
        """Folder of Lightning's checkpoints, above that of the version."""
        return "notebook_probe"

    @property
    def version(self) -> str:
        """Name of the store, or the time at which the logger was made."""
        return self._version

    @property
    def experiment(self) -> Run | None:
        return self._callback.run

    def log_hyperparams(self, params: Mapping[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Keep hyper-parameters in ``run.config``, without secrets."""
        values = vars(params) if isinstance(params, Namespace) else params
        with harmless("hyper-parameters are not recorded"):
            self._callback._watched.configure(values)

    def log_graph(self, model: Any, input_array: Any = None) -> None:
        """Add the callback; Lightning calls this before it trains."""
        trainer = model.trainer
        self._trainer = weakref.ref(trainer)
        own = [one for one in trainer.callbacks if isinstance(one, WatchCallback)]
        if own:
            own[0]._watched.configure(self._callback._watched.config)
            self._callback = own[0]
            return
        # Before those that save checkpoints, which Lightning has last.
        n = sum(not isinstance(one, Checkpoint) for one in trainer.callbacks)
        trainer.callbacks.insert(n, self._callback)

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Record what the callback does not see, as of the state."""
        trainer = None if self._trainer is None else self._trainer()
        if trainer is not None:
            seen = {"epoch", "step", *trainer.logged_metrics}
            others = {name: value for name, value in metrics.items() if name not in seen}
            self._callback._watched.evaluated(others)


def _settings(trainer: Any, module: Any) -> dict[str, Any]:
    """Return what a trainer was given that decides on the training, and its hyper-parameters."""
    owners = (module, trainer.datamodule)
    saved = [one.hparams for one in owners if getattr(one, "_log_hyperparams", False)]
    batch_size = getattr(trainer.train_dataloader, "batch_size", None)
    of_trainer = {name: getattr(trainer, name, None) for name in SETTINGS}
    config = {"trainer": of_trainer, "batch_size": batch_size, "module": type(module).__name__}
    for one in saved:
        config |= one
    return config
