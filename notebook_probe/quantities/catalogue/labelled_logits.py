"""Logits with the right answers: an output and the targets that the loop passed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.predictions import class_blocks
from notebook_probe.quantities.reduce.arrays import readable, sent

__all__ = ["Labelled", "labelled"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Predictions and their labels."""

    logits: Tensor
    """(prediction, class), in float32 or wider."""
    labels: Tensor
    """(prediction,), int64, of a class that there is."""
    counts: Tensor
    """Mask (prediction,), False for a label such as the ignored index, which does not count."""

    @property
    def is_right(self) -> Tensor:
        """(prediction,), whether the likeliest class is the label; False where none counts."""
        return (self.logits.argmax(-1) == self.labels) & self.counts


def labelled(output: Tensor, targets: Tensor) -> Iterator[Labelled]:
    """Predictions with their labels, block by block, in the order of ``targets``.

    Nothing waits for the device.

    Parameters
    ----------
    output : Tensor (batch, class), (batch, class, *positions) or (batch, *positions, class)
        Logits. As many as there are targets are those of class 1 against class 0.
    targets : Tensor (batch,) or (batch, *positions)
        Class indices; negative ones, such as -100, are left out.

    Raises
    ------
    QuantityError
        Shapes that do not belong together, or targets that are no class indices.

    Examples
    --------
    >>> import torch
    >>> [found] = labelled(torch.eye(3), torch.tensor([0, 2, -100]))
    >>> found.is_right.tolist(), found.counts.tolist()
    ([True, False, False], [True, True, False])
    """
    values, labels = readable(output), sent(targets.detach(), output.device)
    # One logit per label is a binary prediction, whose labels may be floats.
    if values.numel() == labels.numel():
        blocks = class_blocks(values.reshape(-1, 1), 1)
    else:
        if labels.is_floating_point() or labels.is_complex():
            raise QuantityError(f"targets are {labels.dtype}; class indices are expected")
        blocks = class_blocks(values, _class_axis(tuple(values.shape), tuple(labels.shape)))
    labels, start = labels.reshape(-1).long(), 0
    for logits in blocks:
        of_block = labels[start : start + len(logits)]
        start += len(logits)
        # An ignored label (-100 in torch's losses) is outside; clamped below, it can be indexed
        # anyway.
        counts = (of_block >= 0) & (of_block < logits.size(1))
        yield Labelled(logits, of_block.clamp(0, logits.size(1) - 1), counts)


def _class_axis(output: tuple[int, ...], targets: tuple[int, ...]) -> int:
    """The axis that an output has and the targets have not, as ``cross_entropy`` has it first."""
    for axis in (1, len(output) - 1):
        if len(output) > 1 and output[:axis] + output[axis + 1 :] == targets:
            return axis
    raise QuantityError(
        f"targets of shape {targets} for an output of shape {output}; one class index is expected "
        f"for each prediction: (batch,) for (batch, class)"
    )
