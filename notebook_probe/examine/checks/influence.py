"""Check that an output depends on its input, and on no other sample or later position."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject

__all__ = ["causality", "samples_apart", "uses_its_input"]

NO_SAMPLES = "no batch of at least two samples, in the first dimension of input and output"
SLIGHT = 1e-5
"""Share of the size of the outputs: less is rounding, as kernels add in another order."""


def samples_apart(subject: Subject) -> Iterator[Finding]:
    """Change the first sample of a batch, and compare the outputs of the others."""
    check = "samples"
    found = _samples(subject)
    if found is None:
        yield Finding(check, "unknown", NO_SAMPLES)
        return
    first, output = found
    if bool((first[0] == first[-1]).all()):
        yield Finding(check, "unknown", "the first and the last sample of the batch are equal")
        return
    others = subject.output(subject.inputs.changed(_first_sample_changed(len(first))))
    assert others is not None
    if _differ(output[1:], others[1:], output):
        text = (
            "in evaluation mode the outputs of samples change with another sample of the batch: a "
            "reshape, a softmax or a normalization over the batch"
        )
        yield Finding(check, "note", text)
    else:
        yield Finding(check, "good", "no sample changes the output of another one")


def uses_its_input(subject: Subject) -> Iterator[Finding]:
    """Compare the outputs of the samples of a batch."""
    check = "input"
    found = _samples(subject)
    if found is None:
        yield Finding(check, "unknown", NO_SAMPLES)
        return
    first, output = found
    if bool((first == first[:1]).all()):
        yield Finding(check, "note", "all samples of the batch are equal")
    elif not _differ(output, output[:1].expand_as(output), output):
        text = (
            "every sample has the same output: the last layer starts at zero, or the input is not "
            "used"
        )
        yield Finding(check, "note", text)
    else:
        yield Finding(check, "good", "samples have different outputs")


def causality(subject: Subject) -> Iterator[Finding]:
    """Change the last position of a sequence, and compare the outputs of those before."""
    check = "causality"
    first, output = subject.inputs.first, subject.plain_output
    if first is None or output is None or not _has_positions(first, output):
        return  # no sequence of tokens
    changed = _last_position_changed(first)
    if changed is None:
        yield Finding(check, "unknown", "all positions of the batch are equal")
        return
    later = subject.output(subject.inputs.replacing(first, changed))
    assert later is not None
    if not _differ(output[:, :-1], later[:, :-1], output):
        yield Finding(check, "good", "no output depends on a later position")
    elif _are_next_tokens(first, subject.targets):
        text = "outputs depend on later positions, and the targets are the next tokens"
        yield Finding(check, "wrong", text, "is_causal=True, or a mask of the upper triangle")
    else:
        yield Finding(check, "note", "outputs depend on later positions")


def _samples(subject: Subject) -> tuple[Tensor, Tensor] | None:
    """Return input and output if both seem to have the samples first."""
    given, output = subject.inputs.first, subject.plain_output
    is_other = any(getattr(part, "batch_first", True) is False for part in subject.model.modules())
    if given is None or output is None or is_other:
        return None
    return (given, output) if len(given) == len(output) > 1 else None


def _has_positions(given: Tensor, output: Tensor) -> bool:
    """Return whether tokens (N, T) are given; floats may have channels in the second dimension."""
    are_tokens = given.ndim == 2 and not given.is_floating_point()
    return are_tokens and output.ndim == 3 and given.shape == output.shape[:2] and len(given[0]) > 1


def _first_sample_changed(n: int) -> Callable[[Tensor], Tensor]:
    """Put the last sample in the place of the first, in every tensor that has as many samples."""

    def change(one: Tensor) -> Tensor:
        if not one.ndim or len(one) != n:
            return one
        new = one.clone()
        new[0] = one[-1]
        if one.is_floating_point():
            new[0] *= 2
        return new

    return change


def _last_position_changed(given: Tensor) -> Tensor | None:
    """Return other tokens at the last position, which the batch has elsewhere."""
    new = given.clone()
    other = given[given != given[0, -1]]
    if not other.numel():
        return None
    new[:, -1] = torch.where(given[:, -1] == given[0, -1], other[0], given[0, -1])
    return new


def _are_next_tokens(given: Tensor, targets: object) -> bool:
    """Return whether targets are the next tokens, or the input, which some models shift."""
    if not isinstance(targets, Tensor) or targets.shape != given.shape:
        return False
    return torch.equal(targets, given) or torch.equal(targets[:, :-1], given[:, 1:])


def _differ(one: Tensor, other: Tensor, whole: Tensor) -> bool:
    size = float(whole.abs().nan_to_num().max())
    return bool((one - other).abs().nan_to_num(nan=0.0).max() > SLIGHT * size) if size else False
