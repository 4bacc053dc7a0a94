"""Training of built models: one, or several in turn."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from notebook_probe.errors import HookError
from notebook_probe.experiment.building.training import TrainedModel
from notebook_probe.experiment.restoring import restore
from notebook_probe.experiment.results import ExperimentResults
from notebook_probe.experiment.units.unit import Unit
from notebook_probe.train.loop.together import run_together

__all__ = ["train_units"]

log = logging.getLogger(__name__)


def train_units(trainings: Sequence[TrainedModel]) -> ExperimentResults:
    """Train every model to its last unit.

    Raises
    ------
    NoChangeError, NanLossError, HiLossError
        Error of the first model that fails, with notes that name it and every other model that
        failed. It ends only the training of that model: the others are trained to their last unit
        before it is raised, and recorded values are kept.
    """
    outcome = ExperimentResults(
        {one.prefix: {} for one in trainings}, {one.prefix: [] for one in trainings}
    )
    with ExitStack() as stack:
        units = [stack.enter_context(_begun(one)) for one in trainings]
        begun = [unit for unit in units if unit is not None]
        try:
            run_together([one.turn for one in begun])
        # The loop wraps what a hook raises; here the hook is ours, so the user gets the original
        # error.
        except HookError as error:
            for one in begun:
                if one.raised is not None and one.raised is error.__cause__:
                    for note in getattr(error, "__notes__", ()):
                        one.raised.add_note(note)
                    raise one.raised from None
            raise
    for one in begun:
        outcome.results[one.prefix] = one.validated
        outcome.ids[one.prefix] = [*one.saver.record_ids]
    return outcome


@contextmanager
def _begun(training: TrainedModel) -> Iterator[Unit | None]:
    """Restored and recorded while it is trained; None where nothing is left to be trained."""
    loop, params = training.loop, training.params
    restored = restore(loop, training.place, params.load, is_saving=True)
    end = params.train.num_steps
    if end is not None and loop.loop_step >= end:
        log.info("%s: %d of %d units are done", training.prefix, loop.loop_step, end)
        # Models may share one stream of data, which keeps batches for every open reader.
        training.data.close()
        yield None
        return
    if params.save.do_save:
        loop.watch(
            store=training.place.record,
            **restored.resume,
            config=training.config,
            name=params.save.exp_id,
        )
    unit = Unit(training, restored.was_loaded)
    hooks = [loop.on_start(unit.on_start, unit.name), loop.on_step(unit.on_step, unit.name)]
    try:
        yield unit
    finally:
        for hook in hooks:
            hook.remove()
        # Checkpoints and rows are written first, as this still needs the open run.
        try:
            training.saver.end(loop)
        finally:
            if loop.run is not None:
                loop.run.close()
