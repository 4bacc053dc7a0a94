"""Facts about a training from its loop or its run."""

from __future__ import annotations

import json
from collections.abc import Iterable

from torch import nn

from notebook_probe.errors import ProbeError
from notebook_probe.lineage.dataset_graph import DatasetGraph
from notebook_probe.lineage.progress import loss_of, scalar_of
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.record.format.notes import EPOCH
from notebook_probe.record.format.source import Event
from notebook_probe.run.run import Run
from notebook_probe.summary.lineage.training import TrainingFacts
from notebook_probe.train.loop.loop import Loop

__all__ = ["training_of_loop", "training_of_run"]


def training_of_loop(loop: Loop, data: DatasetGraph | None = None) -> TrainingFacts:
    """Return the facts of a loop, which knows all of them.

    Parameters
    ----------
    loop : Loop
    data : DatasetGraph, optional
        Graph of the training data.
    """
    trainer = loop.trainer
    loss = loop.last_metrics.get("loss")
    return TrainingFacts(
        network=type(unwrap(trainer.model)).__name__,
        model=trainer.model,
        loss_fn=trainer.loss_fn,
        loss=None if loss is None else float(loss),
        optimizers=[trainer.optimizer],
        epoch=loop.epoch,
        step_num=loop.n_updates,
        data=data,
        checkpoint=_newest_checkpoint(loop),
    )


def training_of_run(
    run: Run,
    step_num: int,
    data: DatasetGraph | None = None,
    model: nn.Module | None = None,
) -> TrainingFacts:
    """Return the facts of a bare run that its record and its optimizers have.

    Parameters
    ----------
    run : Run
    step_num : int
        Complete steps.
    data : DatasetGraph, optional
    model : nn.Module, optional
        The watched one, where it is at hand: a run holds it weakly.
    """
    names = [row.class_name for row in run.modules[:1]]
    loss = loss_of(run).last
    return TrainingFacts(
        network=names[0] if names else None,
        model=model,
        loss=loss if step_num and scalar_of(run, only_loss=True) else None,
        optimizers=run.controls.optimizers,
        epoch=_n_epochs(run.events),
        step_num=step_num,
        data=data,
    )


def _newest_checkpoint(loop: Loop) -> str | None:
    try:
        saved = loop.checkpoints
    except (ProbeError, OSError):  # the folder cannot be reached now
        return None
    # The newest on the present branch, as steps of an abandoned one may be higher.
    return max(saved, key=lambda one: (one.line, one.step)).path if saved else None


def _n_epochs(events: Iterable[Event]) -> int | None:
    """Return the number of epochs started; None if none was noted."""
    begun = [json.loads(event.detail)["epoch"] + 1 for event in events if event.kind == EPOCH]
    return max(begun, default=None)
