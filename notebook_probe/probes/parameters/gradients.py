"""Reading gradients as an optimizer will apply them, and the options with which it will."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot, current_values
from notebook_probe.probes.parameters.batched import BatchedMeasure
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.options import Group, as_tensor, groups_of, options_in, owned_by
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import local

__all__ = ["GradientReader"]


class GradientReader:
    """Readings of some parameters between their last backward and the optimizer's step.

    Parameters
    ----------
    plans : dict
        Slot -> what is read of the parameter there.
    """

    def __init__(self, plans: dict[Slot, ReadingPlan]) -> None:
        self._ready = [(s, p) for s, p in plans.items() if p.is_read_when_ready]
        self._slots = [slot for slot, _ in self._ready]
        self._batched = BatchedMeasure("grad", [plan for _, plan in self._ready])
        self._one_by_one = [
            place for place, (_, plan) in enumerate(self._ready) if plan.is_read_alone
        ]
        self._has_options = any(plan.options for plan in plans.values())
        self._copies: dict[Slot, Tensor] = {}
        self.is_idle = not self._ready
        """Nothing is read."""

    def read(self, frame: StepFrame, optimizer: Optimizer | None) -> None:
        """Read the gradients again, replacing those of a closure's earlier run.

        Parameters
        ----------
        optimizer : Optimizer, optional
            Optimizer that will apply them; without one, all gradients are read, and no options.
        """
        weights = current_values(
            self._slots, owned_by(optimizer) if optimizer is not None else None
        )
        gradients = [None if weight is None else weight.grad for weight in weights]
        scale = getattr(optimizer, "grad_scale", None)  # of a fused optimizer, while it steps
        if scale is not None:
            gradients = [g if g is None else g.detach() / scale.to(g.device) for g in gradients]
        self._batched.measure(frame, gradients)
        for place, gradient in enumerate(gradients):
            if gradient is None and weights[place] is not None:
                self._batched.clear(frame, place)
        groups = self.groups(optimizer)
        for place in self._one_by_one:
            (slot, plan), weight = self._ready[place], weights[place]
            if weight is not None:
                group = groups.get(id(weight), {})
                attempt(
                    frame, plan, "ready", _read, frame, plan, slot, weight, gradients[place], group
                )
                if plan.keeps_gradient:
                    attempt(frame, plan, "after", self._copy, frame, plan, slot, gradients[place])

    def groups(self, optimizer: Optimizer | None) -> dict[int, Group]:
        """Return the groups of the parameters, if an option of theirs is wanted."""
        return groups_of(optimizer) if self._has_options and optimizer is not None else {}

    def take(self, slot: Slot) -> Tensor | None:
        """Return the gradient that the optimizer received, which may have overwritten it since."""
        return self._copies.pop(slot, None)

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Yield the seconds of what is measured together, with the probes that share them."""
        yield from self._batched.costs()

    def _copy(
        self, frame: StepFrame, plan: ReadingPlan, slot: Slot, gradient: Tensor | None
    ) -> None:
        self._copies.pop(slot, None)  # of a step that has raised, perhaps
        if gradient is not None:
            self._copies[slot] = local(gradient.detach()).clone()


def _read(
    frame: StepFrame,
    plan: ReadingPlan,
    slot: Slot,
    weight: Tensor,
    gradient: Tensor | None,
    group: Group,
) -> None:
    options = options_in(group, plan.options)
    for option, value in options.items():
        number = as_tensor(value)
        for cell in plan.cells.get(option, ()):
            if number is not None:
                cell.put(frame, number)
    given = {"grad": gradient, "weight": weight, "module": slot.owner(), **options}
    for function in plan.at("ready"):
        function.put(frame, given)
