"""Check sizes and ranges of inputs and targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject, first_output
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["RANGES", "SHAPES", "are_classes", "inputs", "past_shapes", "targets"]

MOST_SPREAD, MOST_OFFSET = 30.0, 10.0
"""Standard deviation of inputs, and distance of their mean from 0 in units of it."""
FEWEST = 32
"""Samples of a batch in which a constant feature says something."""

RANGES = {
    "SigmoidBackward0": (0.0, 1.0, "a sigmoid"),
    "TanhBackward0": (-1.0, 1.0, "a tanh"),
    "SoftmaxBackward0": (0.0, 1.0, "a softmax"),
    "ReluBackward0": (0.0, float("inf"), "a ReLU"),
}
"""Range of the last operation, by the name of its node."""
SHAPES = {"ViewBackward0", "SqueezeBackward0", "SqueezeBackward1", "ReshapeAliasBackward0",
          "SelectBackward0", "UnsafeViewBackward0", "CloneBackward0", "ToCopyBackward0",
          "UnsqueezeBackward0", "AliasBackward0"}  # fmt: skip
"""Nodes that change a shape or a type alone."""


def inputs(subject: Subject) -> Iterator[Finding]:
    """Look for inputs that are not finite, far from 0 and 1, or constant."""
    floats = [one for one in subject.inputs.tensors if one.is_floating_point() and one.numel()]
    found = [finding for one in floats for finding in _of_input(one.detach())]
    yield from found
    if floats and not found:
        first = floats[0].double()
        text = f"inputs have mean {first.mean():.2g} and standard deviation {_spread(first):.2g}"
        yield Finding("inputs", "good", text)


def _of_input(given: Tensor) -> Iterator[Finding]:
    if not bool(torch.isfinite(given).all()):
        n = int((~torch.isfinite(given)).sum())
        yield Finding("inputs", "wrong", f"{n} of {given.numel()} input values are not finite")
        return
    mean, spread = float(given.double().mean()), _spread(given.double())
    if spread > MOST_SPREAD or abs(mean) > MOST_OFFSET * max(spread, 1.0):
        text = (
            f"inputs have mean {mean:.3g} and standard deviation {spread:.3g}; layers are made "
            f"for about 0 and 1"
        )
        yield Finding("inputs", "note", text, "x = (x - mean) / std  # of the training data")
    if given.ndim == 2 and len(given) >= FEWEST:
        n = int((given == given[:1]).all(0).sum())
        if n:
            text = f"{n} of {given.shape[1]} input features are equal in all {len(given)} samples"
            yield Finding("inputs", "note", text)


def targets(subject: Subject) -> Iterator[Finding]:
    """Compare targets with what the last operation of the model can give."""
    found = [one for one in tensors_of(subject.targets) if one.is_floating_point()]
    if not found:
        yield from _of_classes(subject)
        return
    wanted = found[0].detach()
    if not bool(torch.isfinite(wanted).all()):
        yield Finding("targets", "wrong", "some targets are not finite")
        return
    last = _last_operation(first_output(subject.evaluated))
    if last is None:
        return
    low, high, name = last
    n = int(((wanted < low) | (wanted > high)).sum())
    if n:
        text = (
            f"{n} of {wanted.numel()} targets lie outside of [{low:g}, {high:g}], which is all "
            f"that {name} at the end can give"
        )
        yield Finding("targets", "wrong", text, "remove the last activation, or scale the targets")
    else:
        yield Finding("targets", "good", f"targets are in the range of {name} at the end")


def _of_classes(subject: Subject) -> Iterator[Finding]:
    """Look for classes that the output does not have, where the loss refuses them."""
    wanted, output = subject.targets, subject.plain_output
    if output is None or not are_classes(wanted, output):
        return
    n_classes = output.shape[1]
    outside = wanted[(wanted < 0) | (wanted >= n_classes)]
    if not outside.numel():
        return
    try:
        subject.loss_of(output)  # which may ignore a class, such as -100
    except IndexError:
        text = (
            f"{outside.numel()} of {wanted.numel()} targets are no class of the output, which has "
            f"0 to {n_classes - 1}: there are {int(wanted.min())} to {int(wanted.max())}"
        )
        advice = f"a last layer with {int(wanted.max()) + 1} outputs, or other targets"
        yield Finding("targets", "wrong", text, advice)


def are_classes(targets: Any, output: Tensor) -> TypeGuard[Tensor]:
    """Return whether targets are whole numbers, one for each vector of scores."""
    return (
        isinstance(targets, Tensor)
        and not targets.is_floating_point()
        and output.ndim > 1
        and output.shape[1] > 1
        and targets.shape == (len(output), *output.shape[2:])
    )


def _last_operation(output: Tensor | None) -> tuple[float, float, str] | None:
    node = past_shapes(output.grad_fn if output is not None else None)
    return RANGES.get(node.name()) if node is not None else None


def past_shapes(node: Node | None) -> Node | None:
    """Return the first node from this one on that does more than change a shape or a type."""
    while node is not None and node.name() in SHAPES and node.next_functions:
        node = node.next_functions[0][0]
    return node


def _spread(given: Tensor) -> float:
    # Defined also for a single number, where the unbiased one is NaN.
    return float(given.std(correction=0))
