"""The batch on which a run may run its model once more."""

from __future__ import annotations

from functools import partial

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.run.gate import Gate

__all__ = ["keep_probe_batch"]


def keep_probe_batch(batch: ProbeBatch, observer: Observer, gate: Gate, events: EventSink) -> None:
    """Run the model on ``batch`` from now on, or from the next step where one is open.

    It is tried at once, unless another thread trains the model; whatever that raises is raised.
    """
    keep = partial(_keep, batch, observer, events)
    if not gate.is_elsewhere:
        observer.replay.try_out(batch)
        observer.steps.settle()
        if observer.steps.frame is None:
            keep()
            return
    gate.once(keep)


def _keep(batch: ProbeBatch, observer: Observer, events: EventSink) -> None:
    observer.steps.keep_batch(batch)
    events.event(observer.clock.upcoming, "probe_batch", str(batch))
