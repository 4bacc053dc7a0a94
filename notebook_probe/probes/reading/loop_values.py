"""Read the values that the training loop passes for a batch: targets, losses, indices, anything."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from torch import Tensor

from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.containers import activations, first_of
from notebook_probe.probes.step.frame import StepFrame

__all__ = ["take"]


def take(
    frame: StepFrame,
    plan: ReadingPlan,
    wanted: frozenset[str],
    values: Mapping[str, Sequence[Tensor]],
) -> None:
    """Keep what some due probe needs until the batch is over, and read what is complete now.

    Parameters
    ----------
    frame : StepFrame
        Frame of the step that the batch belongs to.
    plan : ReadingPlan
        Readings of a batch.
    wanted : frozenset of str
        Features of a batch that are needed at all.
    values : dict
        Name -> tensors. A known name begins the next micro-batch.
    """
    begun = time.perf_counter()
    given = {f"batch.{name}": tensors for name, tensors in values.items()}
    given = {need: [*tensors] for need, tensors in given.items() if tensors}
    if not (needed := wanted & given.keys()):
        return
    if frame.batch.keys() & needed:
        frame.batch.clear()
    frame.batch.update({need: first_of(given[need]) for need in needed})
    read = {need: given[need] for need in needed}
    attempt_in_hook(begun, frame, plan, "batch", _read, frame, plan, read)


def _read(frame: StepFrame, plan: ReadingPlan, given: Mapping[str, Sequence[Tensor]]) -> None:
    for need, tensors in given.items():
        for cell in plan.cells.get(need, ()):
            for tensor in [first_of(tensors)] if cell.first_only else activations([*tensors]):
                cell.add(frame, tensor, None, 0)
    for function in plan.at("batch"):
        if given.keys() & set(function.probe.quantity.needs):
            function.call(frame, {})
