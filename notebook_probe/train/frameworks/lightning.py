"""Lightning: ``Trainer(callbacks=[WatchCallback()])``."""

from __future__ import annotations

import math
from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched

with needs("lightning"):
    try:
        from lightning.pytorch import Callback
    except ModuleNotFoundError:
        from pytorch_lightning import Callback

__all__ = ["WatchCallback"]


class WatchCallback(Callback):
    """Records what a LightningModule logs, and lets Pause, Step and Stop act between two batches.

    What `training_step` logs is of its step; what is logged of an epoch or by a validation or
    test is of the state then: its step is the number of updates completed. All are called as
    Lightning's loggers call them. Stop sets ``trainer.should_stop``, so that Lightning ends the
    training, validates where it would, and obeys ``min_epochs`` and ``min_steps``.

    Parameters
    ----------
    run : Run, optional
        Of a model that is watched already; else the LightningModule is, as training starts.
    **options
        Of `notebook_probe.watch`; with ``rank=None`` only the main process records.

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
