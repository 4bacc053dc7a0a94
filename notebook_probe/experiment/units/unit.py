"""Work of a unit in addition to the update, as one callback of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from notebook_probe.experiment.building.training import TrainedModel
from notebook_probe.experiment.units.checks import check_loss
from notebook_probe.train.generators import set_generators
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.loop.together import Turn
from notebook_probe.train.metrics.averages import Value

__all__ = ["Unit"]


class Unit:
    """Check the loss, validate and save, in this order.

    Parameters
    ----------
    training : TrainedModel
    was_loaded : bool
        True if it continues from a saved state.

    Attributes
    ----------
    raised : Exception or None
        Error that ended the training of the model, if any.
    validated : dict
        The last result of each validation.
    """

    name = "unit"

    def __init__(self, training: TrainedModel, was_loaded: bool) -> None:
        self.prefix, self.saver = training.prefix, training.saver
        self.turn = Turn(
            training.loop, training.data, training.params.train.num_steps, training.prefix
        )
        self.raised: Exception | None = None
        self.validated: dict[str, dict[str, Any]] = {}
        self._training, self._was_loaded = training, was_loaded

    def on_start(self, loop: Loop, data: Any) -> None:
        """Handle the state before training."""
        with self._keeping():
            # Other models were built in between, and have drawn from the global generators.
            if not self._was_loaded:
                set_generators(self._training.generators)
            self.saver.begin(loop, was_loaded=self._was_loaded)
            if loop.n_updates == 0 and self._training.params.train.validate_first:
                self._validate(loop)

    def on_step(self, loop: Loop, metrics: Mapping[str, Value]) -> None:
        """Handle an update."""
        with self._keeping():
            k, params = loop.n_updates, self._training.params
            # Before the check, so that the record has the results of a unit that diverged.
            self.saver.results(loop, self._training.trainer.results)
            check_loss(k, float(metrics["loss"]), params.train.thres_loss)
            every = params.save.save_valid_freq
            if every is not None and k % every == 0:
                self._validate(loop)
            self.saver.unit(loop, metrics)

    def _validate(self, loop: Loop) -> None:
        if self._training.validations:
            self.validated = self._training.validate()
            self.saver.validated(loop, self.validated)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Keep the original error, which the loop reports as one of a hook."""
        try:
            yield
        except Exception as error:
            self.raised = error
            raise
