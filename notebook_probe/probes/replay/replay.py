"""Replay of the model on the probe batch, as a step opens, for what is due in it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import ClosedRunError, UnreadableError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.reparametrized import weight_of
from notebook_probe.model.selectors import standard_place
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.uninterrupted import whole

__all__ = ["NO_BATCH", "Replay"]

NO_BATCH = "there is no probe batch: keep one with run.probe_batch(inputs, targets, loss_fn)"


class Replay:
    """The probe batch of one model, and the readings that need it.

    Attributes
    ----------
    batch : ProbeBatch or None
    progress : str
        Text about the current measurement; empty if there is none.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        self.batch: ProbeBatch | None = None
        self.progress = ""
        self._measuring = ""

    @whole
    def try_out(self, batch: ProbeBatch) -> None:
        """Evaluate a batch once, so that its errors are raised to the caller."""
        with batch.untouched(self.model), torch.no_grad():
            batch.loss(self.model, {})

    @property
    def model(self) -> nn.Module:
        model = self._model()
        if model is None:
            raise ClosedRunError("the watched model no longer exists")
        return model

    @whole
    def read(self, frame: StepFrame, plans: Mapping[str, ReadingPlan], model_map: ModelMap) -> None:
        """Measure the due quantities of the state before the step."""
        begun = time.perf_counter()
        try:
            if self.batch is None:
                raise UnreadableError(NO_BATCH)
            with self.batch.untouched(self.model):
                self._read_places(frame, plans, self.batch, model_map)
        except Exception as error:  # the model or the loss may fail; training must continue
            frame.blame_all([p for plan in plans.values() for p in plan.probes], error)
        finally:
            self.progress = ""
            frame.seconds += time.perf_counter() - begun

    def _read_places(
        self,
        frame: StepFrame,
        plans: Mapping[str, ReadingPlan],
        batch: ProbeBatch,
        model_map: ModelMap,
    ) -> None:
        modules = model_map.by_every_path
        outputs = self._outputs(plans, batch, modules)
        for place, plan in plans.items():
            attempt(
                frame,
                plan,
                "replay",
                self._read_place,
                frame,
                plan,
                model_map,
                place,
                outputs,
                batch,
            )

    def _read_place(
        self,
        frame: StepFrame,
        plan: ReadingPlan,
        model_map: ModelMap,
        place: str,
        outputs: dict[str, list[Sequence[Tensor]]],
        batch: ProbeBatch,
    ) -> None:
        module = model_map.by_every_path.get(place)
        given: dict[str, Any] = {"module": unwrapped(module)}
        if module is not None:
            given["weight"] = weight_of(module)
        if place in outputs:
            given["probe_output"] = _pool(frame, plan, module, outputs.pop(place))
        if plan.wants("landscape", "replay"):
            given["landscape"] = self._landscape(model_map, place, batch)
        for function in plan.at("replay"):
            self._measuring = f"{function.probe.quantity.name} at {standard_place(place)}"
            function.call(frame, given)

    def _outputs(
        self, plans: Mapping[str, ReadingPlan], batch: ProbeBatch, modules: Mapping[str, nn.Module]
    ) -> dict[str, list[Sequence[Tensor]]]:
        """Return the outputs of each module's calls, in one forward pass for all."""
        wanted = {
            place: plan
            for place, plan in plans.items()
            if place in modules and plan.wants("probe_output", "replay")
        }
        seen: dict[str, list[Sequence[Tensor]]] = {place: [] for place in wanted}
        if not wanted:
            return seen
        begun = time.perf_counter()
        self.progress = "outputs for the probe batch"
        with torch.no_grad(), _listening(modules, seen):
            batch.outputs(self.model, {})
        for plan in wanted.values():
            plan.spent("replay", (time.perf_counter() - begun) / len(wanted))
        return seen

    def _landscape(self, model_map: ModelMap, place: str, batch: ProbeBatch) -> Landscape:
        """Return the landscape of all trained parameters at a place and below it."""
        names = {id(value): name for name, value in self.model.named_parameters()}
        below = [slot.get() for slot in model_map.slots(place, below=True)]
        point = [own for own in below if own is not None and own.requires_grad]
        own_names = [names[id(own)] for own in point]

        def of_samples() -> list[partial[Tensor]]:
            return [partial(self._loss, one, own_names) for one in batch.samples()]

        return Landscape(partial(self._loss, batch, own_names), point, self._tell, of_samples)

    def _loss(self, batch: ProbeBatch, names: Sequence[str], point: Sequence[Tensor]) -> Tensor:
        return batch.loss(self.model, dict(zip(names, point, strict=True)))

    def _tell(self, counts: str) -> None:
        self.progress = f"{self._measuring}: {counts}"


def _pool(
    frame: StepFrame, plan: ReadingPlan, module: nn.Module | None, calls: Sequence[Sequence[Tensor]]
) -> Tensor | None:
    """Summarise all calls; returns what the first one returned."""
    for number, tensors in enumerate(calls):
        for cell in plan.cells.get("probe_output", ()):
            for tensor in tensors[:1] if cell.first_only else tensors:
                cell.add(frame, tensor, module, number)
    first = next(filter(None, calls), None)
    if first is None:
        for probe in plan.probes:
            if "probe_output" in probe.quantity.needs:
                probe.gap = "not called for the probe batch"
    return first[0] if first else None


@contextmanager
def _listening(
    modules: Mapping[str, nn.Module], seen: Mapping[str, list[Sequence[Tensor]]]
) -> Iterator[None]:
    """Keep what these modules return, copied: a later operation may write into it."""
    handles = []
    for place, calls in seen.items():

        def keep(module: nn.Module, args: Any, output: Any, calls: Any = calls) -> None:
            floats = [one for one in tensors_of(output) if one.is_floating_point()]
            calls.append([one.detach().clone() for one in floats or tensors_of(output)])

        handles.append(modules[place].register_forward_hook(keep))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
