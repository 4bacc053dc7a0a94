"""Running all checks on one subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from notebook_probe.examine.checks.affine import not_affine
from notebook_probe.examine.checks.cost import step_cost
from notebook_probe.examine.checks.gradients import gradients
from notebook_probe.examine.checks.influence import causality, samples_apart, uses_its_input
from notebook_probe.examine.checks.losses import chance_level, loss_takes_logits, loss_uses_targets
from notebook_probe.examine.checks.repeats import evaluation_repeats
from notebook_probe.examine.checks.values import inputs, targets
from notebook_probe.examine.checks.who_trains import who_trains
from notebook_probe.examine.findings import Examination, Finding
from notebook_probe.examine.subject import Subject
from notebook_probe.probes.replay.isolation import untouched

__all__ = ["CHECKS", "examine"]

Check = Callable[[Subject], Iterable[Finding]]

CHECKS: dict[str, Check] = {
    "who trains": who_trains,
    "gradients": gradients,
    "loss": loss_takes_logits,
    "targets": targets,
    "targets of samples": loss_uses_targets,
    "first loss": chance_level,
    "inputs": inputs,
    "input": uses_its_input,
    "samples": samples_apart,
    "causality": causality,
    "evaluation repeats": evaluation_repeats,
    "non-linearity": not_affine,
    "cost": step_cost,
}
"""Each check by its name, in the order in which findings of one verdict are listed."""


def examine(subject: Subject) -> Examination:
    """Run all checks; one that raises is listed as not checked.

    Random generators, modes and attributes of the model are put back as they were.
    """
    tensors = [*subject.model.parameters(), *subject.model.buffers(), *subject.inputs.tensors]
    with untouched([subject.model], {one.device for one in tensors}):
        for one in subject.model.parameters():
            one.grad = None
        found = [finding for name in CHECKS for finding in _checked(name, subject)]
    return Examination.of(found)


def _checked(name: str, subject: Subject) -> list[Finding]:
    try:
        with torch.enable_grad():
            return [*CHECKS[name](subject)]
    except Exception as error:  # of the user's model or loss, which a check calls in unusual ways
        return [Finding(name, "unknown", f"{type(error).__name__}: {error}")]
