"""skorch: ``NeuralNetClassifier(..., callbacks=[WatchCallback()])``."""

from __future__ import annotations

from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched

with needs("skorch"):
    from skorch.callbacks import Callback

__all__ = ["WatchCallback"]

NO_NUMBERS = ("batches", "epoch")
"""Other entries in an epoch's row of the history."""


class WatchCallback(Callback):
    """Records the history of a net, and lets Pause, Step and Stop act between two batches.

    ``train_loss`` is the loss of each step. The history's values of an epoch, such as
    ``valid_loss`` and scores, describe the state at its end: their step is the number of updates
    completed; the mean of the losses is called ``epoch_train_loss`` there. Put it last, so that it
    sees what other callbacks score. Stop ends `fit` as an interrupt does: it returns.

    Parameters
    ----------
    run : Run, optional
        Run of a module that is already watched. By default the net's ``module_`` is watched as
        training starts.
    **options
        Options of `notebook_probe.watch`.

    Attributes
    ----------
    run : Run or None
        None before training starts.

    Examples
    --------
    >>> NeuralNetClassifier(Module, callbacks=[WatchCallback()]).fit(x, y)  # doctest: +SKIP
    """

    def __init__(self, run: Run | None = None, **options: Any) -> None:
        self._options = options
        self._watched = Watched(run, options)
        self._begun_at: int | None = None

    @property
    def run(self) -> Run | None:
        return self._watched.run

    def on_train_begin(self, net: Any, *_: Any, **__: Any) -> None:
        self._watched.begin(net.module_)
        self._begun_at = self._watched.step

    def on_epoch_begin(self, net: Any, *_: Any, **__: Any) -> None:
        self._watched.epoch(len(net.history) - 1)
        self._watched.boundary()

    def on_batch_end(self, net: Any, batch: Any = None, training: bool = False, **_: Any) -> None:
        if training:
            self._watched.trained({"train_loss": net.history[-1, "batches", -1, "train_loss"]})
            self._watched.boundary()

    def on_epoch_end(self, net: Any, *_: Any, **__: Any) -> None:
        row = {name: value for name, value in net.history[-1].items() if name not in NO_NUMBERS}
        if "train_loss" in row:
            # The name is that of the steps' losses, which are another series.
            row["epoch_train_loss"] = row.pop("train_loss")
        self._watched.evaluated(row)
        if self._begun_at is not None:  # the first epoch tells how long the others are
            done, self._begun_at = self._watched.step - self._begun_at, None
            self._watched.expect(done, done * net.max_epochs)

    def on_train_end(self, net: Any, *_: Any, **__: Any) -> None:
        self._watched.ended()

    # ---------------------------------------------------------------- copies of the net

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options of watch: a clone of the net trains another module, in a new run."""
        return dict(self._options)

    def __getstate__(self) -> dict[str, Any]:
        return self.get_params()  # a net that is saved or copied has no run

    def __setstate__(self, options: dict[str, Any]) -> None:
        self.__init__(**options)  # type: ignore[misc]
