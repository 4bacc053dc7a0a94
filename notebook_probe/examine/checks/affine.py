"""Check that a network of several layers is more than one layer.

Layers without anything non-linear between them are one affine map.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject

__all__ = ["not_affine"]

CHECK = "non-linearity"
SLIGHT = 1e-4
"""Share of the spread of the outputs: less is rounding."""


def not_affine(subject: Subject) -> Iterator[Finding]:
    """Compare the output in the middle of two inputs with the middle of their outputs."""
    n_layers = _n_layers(subject.model)
    first = subject.inputs.first
    if n_layers < 2 or first is None or not first.is_floating_point() or len(first) < 2:
        return
    far = first.flip(0) * 4  # where other units are on
    ends = [subject.output(subject.inputs.replacing(first, one)) for one in (first, far)]
    middle = subject.output(subject.inputs.replacing(first, (first + far) / 2))
    one, other = ends
    if one is None or other is None or middle is None or middle.shape != one.shape:
        return
    if _distance(middle, (one + other) / 2) <= SLIGHT * _distance(one, other):
        text = f"the network is affine in its input: its {n_layers} layers are no more than one"
        yield Finding(CHECK, "note", text, "nn.ReLU() or nn.GELU() between layers")
    else:
        yield Finding(CHECK, "good", f"the network of {n_layers} layers is not affine")


def _n_layers(model: nn.Module) -> int:
    weights = [one for one in model.parameters() if one.ndim > 1]
    return len(weights)


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).double().norm())
