"""Check which parameters the gradient of the loss reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from notebook_probe.examine.checks.who_trains import named
from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject, TrainedStep

__all__ = ["gradients"]

CHECK = "gradients"
CUT = "look for .detach(), .item(), .argmax(), numpy or torch.no_grad() on the way to the loss"


def gradients(subject: Subject) -> Iterator[Finding]:
    """Run one backward, and say which parameters have no gradient, or one that is of no use."""
    trained = subject.trained
    if trained is None:
        text = "no loss is known: examine(inputs, targets, loss)"
        yield Finding(CHECK, "unknown", text)
    elif not bool(torch.isfinite(trained.loss).all()):
        text = f"the loss is {_short(trained.loss)} at the first batch"
        yield Finding(CHECK, "wrong", text)
    elif not trained.gradients:
        yield Finding(CHECK, "unknown", "no parameter requires a gradient")
    else:
        yield from _of_parameters(trained)


def _of_parameters(trained: TrainedStep) -> Iterator[Finding]:
    found = {name: one for name, one in trained.gradients.items() if one is not None}
    if not found:
        yield Finding(CHECK, "wrong", "the loss does not depend on any parameter", CUT)
        return
    spoiled = [name for name, one in found.items() if not bool(torch.isfinite(one).all())]
    if spoiled:
        yield Finding(CHECK, "wrong", f"the gradient is not finite at {named(spoiled)}")
    zero = [name for name, one in found.items() if not bool(one.count_nonzero())]
    if len(zero) == len(found):
        yield Finding(CHECK, "wrong", "every gradient is exactly zero: nothing would be learned")
        return
    missing = [name for name, one in trained.gradients.items() if one is None]
    if missing:
        text = f"the loss does not depend on {named(missing)}: not used, or cut off"
        yield Finding(CHECK, "note", text, CUT)
    if zero:
        text = (
            f"the gradient is exactly zero at {named(zero)}: a later layer starts at zero, or all "
            f"units are off"
        )
        yield Finding(CHECK, "note", text)
    if not (spoiled or zero or missing):
        text = f"the loss reaches all {len(found)} parameters{_spread(found)}"
        yield Finding(CHECK, "good", text)


def _spread(found: Mapping[str, Tensor]) -> str:
    """Return the smallest and the largest norm as text; empty if there is only one."""
    norms = {name: float(one.double().norm()) for name, one in found.items()}
    least, most = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    if least == most:
        return ""
    return f", with norms from {norms[least]:.2g} ({least}) to {norms[most]:.2g} ({most})"


def _short(loss: Tensor) -> str:
    return f"{float(loss.detach()):g}" if loss.numel() == 1 else "not finite"
