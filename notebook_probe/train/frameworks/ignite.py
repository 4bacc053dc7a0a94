"""ignite: ``WatchHandler(model).attach(trainer, eval=evaluator)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn

from notebook_probe.run.run import Run
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched

with needs("pytorch-ignite"):
    from ignite import distributed as idist
    from ignite.engine import Engine, Events

__all__ = ["WatchHandler"]


class WatchHandler:
    """Records what engines put out, and lets Pause, Step and Stop act before a batch is drawn.

    The trainer's output is recorded at its step, a single number as ``loss``. Metrics are of the
    state: their step is the number of updates completed. Those of an evaluator are called after it,
    ``eval_accuracy``; those of the trainer as they are, at the end of each epoch, if they were
    attached before. Stop is ``trainer.terminate()``. For the length of the training in schedules,
    an iteration counts as one update.

    Parameters
    ----------
    watched : Run or nn.Module
        A run, or a model, which is watched as training starts.
    output_transform : callable, optional
        Same as in ignite's handlers: makes a number, or a dict of numbers, of the trainer's output.
    **options
        Options of `notebook_probe.watch`; with ``rank=None`` only the main process records.

    Attributes
    ----------
    run : Run or None
        None before training starts.

    Examples
    --------
    >>> WatchHandler(model, store="runs/first.zarr").attach(
    ...     trainer, eval=evaluator
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        watched: Run | nn.Module,
        output_transform: Callable[[Any], Any] = lambda output: output,
        **options: Any,
    ) -> None:
        self._model = watched if isinstance(watched, nn.Module) else None
        self._watched = Watched(None if isinstance(watched, nn.Module) else watched, options)
        self._output_transform = output_transform

    @property
    def run(self) -> Run | None:
        return self._watched.run

    def attach(self, trainer: Engine, /, **evaluators: Engine) -> None:
        """Record what ``trainer`` does, and what evaluators find, by the names given to them."""
        trainer.add_event_handler(Events.STARTED, self._started)
        trainer.add_event_handler(Events.EPOCH_STARTED, self._epoch_started)
        trainer.add_event_handler(Events.GET_BATCH_STARTED, self._before_batch)
        trainer.add_event_handler(Events.ITERATION_COMPLETED, self._trained)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, partial(self._evaluated, ""))
        trainer.add_event_handler(Events.COMPLETED, self._ended)
        trainer.add_event_handler(Events.TERMINATE, self._ended)
        for name, evaluator in evaluators.items():
            evaluator.add_event_handler(Events.COMPLETED, partial(self._evaluated, f"{name}_"))

    def _started(self, engine: Engine) -> None:
        model, done, end = self._model, engine.state.iteration, _end(engine.state)
        if model is not None:
            self._watched.begin(model, done, end, is_main=idist.get_rank() == 0)
            self._model = None  # a run holds it weakly
        elif end != UNKNOWN:
            self._watched.expect(done, end)

    def _epoch_started(self, engine: Engine) -> None:
        self._watched.epoch(engine.state.epoch - 1)

    def _before_batch(self, engine: Engine) -> None:
        if self._watched.is_stopped():
            engine.terminate()

    def _trained(self, engine: Engine) -> None:
        output = self._output_transform(engine.state.output)
        self._watched.trained(output if isinstance(output, Mapping) else {"loss": output})

    def _evaluated(self, prefix: str, engine: Engine) -> None:
        metrics = {f"{prefix}{name}": value for name, value in engine.state.metrics.items()}
        self._watched.evaluated(metrics)

    def _ended(self, engine: Engine) -> None:
        self._watched.ended()


def _end(state: Any) -> int:
    """Return the last iteration; -1 if unknown."""
    if state.max_iters is not None:
        return state.max_iters
    known = state.max_epochs is not None and state.epoch_length is not None
    return state.max_epochs * state.epoch_length if known else UNKNOWN
