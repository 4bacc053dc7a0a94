"""One cell of the table: a preset or a quantity on one workload."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn

import notebook_probe as nbp
from benchmarks.peers.ours import begin
from benchmarks.quantities.loop import Loop, loop
from benchmarks.quantities.own import HISTORY, LEAST, in_all, own
from benchmarks.quantities.stage import Stage, played
from benchmarks.workloads import Workload
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities import Quantity, as_quantity
from notebook_probe.quantities.define.costs import Cell
from notebook_probe.run.attach.default_places import default_places_of
from notebook_probe.run.attach.preset import Preset
from notebook_probe.run.attach.presets import presets

__all__ = ["of_preset", "of_quantity"]

Make = Callable[[], Workload]


def of_preset(name: str, make: Make) -> Cell:
    """On average over the steps of its own schedules."""
    stage = Stage()
    preset, kinds = played(presets[name], stage)
    stage.set(next(iter(kinds)))
    needs = {need for row in preset.rows for each in row.names for need in as_quantity(each).needs}
    with _training(make(), needs - SELDOM, preset) as training:
        parts = []
        for kind, share in kinds.items():
            stage.set(kind)
            parts.append((share, own(training)))
        return _why_nothing(training.run) or in_all(parts)


SELDOM = frozenset({"grad_micro", "scaler", "loss_scale", "batch.losses"})
"""What the usual loop, on which presets are measured, does not have."""


def of_quantity(quantity: Quantity, make: Make) -> Cell:
    """Alone, in steps in which it is due, wherever it fits."""
    with _training(make(), quantity.needs, None) as training:
        refused = _attach(training.run, quantity, training.workload.model)
        if refused:
            return _in_short(refused, quantity)
        measured = own(training, HISTORY if quantity.is_of_step else LEAST)
        return _in_short(_why_nothing(training.run), quantity) or in_all([(1.0, measured)])


@contextmanager
def _training(workload: Workload, needs: Collection[str], probes: Preset | None) -> Iterator[Loop]:
    with tempfile.TemporaryDirectory() as folder, begin(workload, probes, Path(folder)) as run:
        yield loop(workload, run, needs)


def _attach(run: nbp.Run, quantity: Quantity, model: nn.Module) -> str:
    """Where it usually is and fits, or else at the model; why not, where it fits nowhere."""
    refused = [
        _refused(run, quantity, place) for place in default_places_of(ModelMap(model), quantity)
    ]
    fits = not all(refused) or not _refused(run, quantity, "")
    return "" if fits else refused[0]


def _refused(run: nbp.Run, quantity: Quantity, place: str) -> str:
    try:
        run.attach(place, quantity)
    except nbp.NotApplicableError as error:
        return str(error)
    return ""


def _why_nothing(run: nbp.Run) -> str:
    """In the words of most probes; empty when there are values."""
    run.controls.settle()
    probes = run.status().probes
    if any(probe.n_values for probe in probes):
        return ""
    notes = Counter(probe.error or probe.note for probe in probes)
    return notes.most_common(1)[0][0] if notes else "it fits no module"


def _in_short(reason: str, quantity: Quantity) -> str:
    """Without the name of the quantity and the path of the layer, which are the table's matter."""
    return re.sub(r"'[^']*' \((\w+)\)", r"\1", reason.removeprefix(quantity.name).lstrip(": "))
