"""Quantities of a batch: how even its classes are, and whether its samples differ.

Mean and spread of a batch are `input_mean` and `input_std` at the model itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import sent, wide

__all__ = [
    "BatchSeenBefore",
    "DuplicateFraction",
    "LabelEntropy",
    "LabelShare",
    "PaddingShare",
    "TruncatedShare",
    "hashes",
]

SEED = 20_11
AT_ONCE = 1 << 20
"""Elements hashed at a time."""
MOST = 1 << 20
"""Samples that are remembered: 8 MB."""
UNSORTED = 1 << 12
"""Samples that wait to be sorted in."""

_NONE = torch.zeros(0, dtype=torch.int64)

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int32}
"""Integers of as many bytes; of short numbers in float64, eight end in too many zeros to tell."""


@window_quantity(samples="step", units="nat", source="definition", question=questions.DATA)
class LabelEntropy:
    """Evenness of the classes of a batch, ``-sum_c p_c ln p_c``, ``p_c`` the share of class c.

    ``ln`` of the number of classes where all are as frequent; 0 for a batch of one class only,
    which a loader without shuffling makes of sorted data. Over the targets that the loop hands
    over, ``run.batch(targets=y)``; all micro-batches of the step together.

    Warnings
    --------
    Of a batch smaller than the number of classes it can be ``ln`` of the batch size at most.
    """

    def reset(self) -> None:
        self._labels: list[Tensor] = []

    def update(self, batch_targets: Tensor) -> None:
        if batch_targets.is_floating_point() or batch_targets.is_complex():
            raise QuantityError(f"targets are {batch_targets.dtype}; class indices are expected")
        # A copy, as the loop may write its next batch into the same memory.
        self._labels.append(batch_targets.detach().reshape(-1).clone())

    def compute(self) -> Tensor | None:
        if not self._labels:
            return None
        labels = torch.cat(self._labels).long()
        counts = _counts_of(labels, counted=labels >= 0)
        return torch.special.entr(counts / counts.sum()).sum()


@window_quantity(
    samples="step", cost="sort", source="definition", question=questions.DATA, bounds=(0, 1)
)
class DuplicateFraction:
    """Share of samples that are copies of another in the batch, ``1 - #(distinct) / n``.

    Bit for bit, along the first axis of the input; all micro-batches of the step together. 0 is
    usual. Above it the data set has copies, or two workers of the loader draw the same samples.

    Warnings
    --------
    Sampling with replacement makes copies. Augmentation with a random part hides them.
    """

    def reset(self) -> None:
        self._hashes: list[Tensor] = []

    def update(self, input: Tensor) -> None:
        if input.dim():
            self._hashes.append(hashes(input))

    def compute(self) -> Tensor | None:
        if not self._hashes:
            return None
        found = torch.cat(self._hashes)
        n_distinct = (_counts_of(found, counted=torch.ones_like(found, dtype=torch.bool)) > 0).sum()
        return 1 - n_distinct / found.numel()


@window_quantity(cost="sort", source="definition", question=questions.DATA, bounds=(0, 1))
class BatchSeenBefore:
    """Share of samples that an earlier batch had, ``#(seen before) / n``, since the last due step.

    Bit for bit, along the first axis of the input, among the first million samples since it was
    attached. 0 in the first epoch and 1 afterwards, where data are not augmented. Above 0 in the
    first epoch the data set has copies, or the loader starts again; 1 from the second step on is
    one batch over and over.

    Warnings
    --------
    Augmentation with a random part hides what is seen again. A continued run only knows the samples
    since then.
    """

    def __init__(self) -> None:
        self._sorted, self._waiting = _NONE, _NONE

    def reset(self) -> None:
        """Reset the count; what was seen stays known."""
        self._seen: list[Tensor] = []

    def update(self, input: Tensor) -> None:
        if not input.dim() or not len(input):
            return
        found = hashes(input)
        known, waiting = sent(self._sorted, found.device), sent(self._waiting, found.device)
        seen = torch.isin(found, waiting)
        if len(known):
            place = torch.searchsorted(known, found).clamp_(max=len(known) - 1)
            seen |= known[place] == found
        self._seen.append(seen)
        if len(known) + len(waiting) < MOST:
            waiting = torch.cat([waiting, found])
        if len(waiting) > UNSORTED:
            known, waiting = torch.cat([known, waiting]).sort().values, waiting[:0]
        self._sorted, self._waiting = known, waiting

    def compute(self) -> Tensor | None:
        return torch.cat(self._seen).double().mean() if self._seen else None


@window_quantity(samples="step", source="definition", question=questions.DATA, bounds=(0, 1))
class LabelShare:
    """Share of the targets that count in the loss, ``#(y >= 0) / n``.

    The others are negative, as the -100 of prompts and padding in language models. Over the targets
    that the loop hands over, ``run.batch(targets=y)``; all micro-batches of the step together. At
    0.1 nine of ten tokens are computed and teach nothing; at 0 the loss is NaN.

    Warnings
    --------
    Of a mean over each micro-batch, targets in one with few of them weigh more.
    """

    def reset(self) -> None:
        self._counted = _ShareOf()

    def update(self, batch_targets: Tensor) -> None:
        if batch_targets.is_floating_point() or batch_targets.is_complex():
            raise QuantityError(f"targets are {batch_targets.dtype}; class indices are expected")
        self._counted.add(batch_targets >= 0)

    def compute(self) -> Tensor | None:
        return self._counted.share()


@window_quantity(samples="step", source="definition", question=questions.DATA, bounds=(0, 1))
class PaddingShare:
    """Share of the positions of a batch that are padding, ``#(mask = 0) / n``.

    Over the mask that the loop hands over, ``run.batch(mask=attention_mask)``, which is 1 or true
    where a position counts; all micro-batches of the step together. At 0.5 half of the computation
    is for nothing: sort samples by length within a few batches, or pack several into one row.

    Warnings
    --------
    Rows are padded to the longest of their batch, so that larger batches have more padding.
    """

    def reset(self) -> None:
        self._padded = _ShareOf()

    def update(self, batch_mask: Tensor) -> None:
        self._padded.add(_flags("mask", batch_mask) == 0)

    def compute(self) -> Tensor | None:
        return self._padded.share()


@window_quantity(samples="step", source="definition", question=questions.DATA, bounds=(0, 1))
class TruncatedShare:
    """Share of the samples of a batch that were cut to the longest length allowed, ``#(cut) / n``.

    Over what the loop hands over, ``run.batch(truncated=lengths > longest)``, one flag for each
    sample; all micro-batches of the step together. A cut sample has no end: a language model that
    is trained on many of them does not learn to stop, and a cut answer has a wrong reward.

    Warnings
    --------
    Lengths are those before the cut; after it, a sample that just fits looks like one that was cut.
    """

    def reset(self) -> None:
        self._cut = _ShareOf()

    def update(self, batch_truncated: Tensor) -> None:
        self._cut.add(_flags("truncated", batch_truncated) != 0)

    def compute(self) -> Tensor | None:
        return self._cut.share()


class _ShareOf:
    """Share of true entries in all tensors that were added."""

    def __init__(self) -> None:
        self._counts: list[Tensor] = []
        self._n = 0

    def add(self, flags: Tensor) -> None:
        self._counts.append(torch.count_nonzero(flags))
        self._n += flags.numel()

    def share(self) -> Tensor | None:
        """Return the share; None without an entry."""
        return torch.stack(self._counts).sum().double() / self._n if self._n else None


def _flags(name: str, given: Tensor) -> Tensor:
    """Return flags as they were given; a mask that is added to scores is none."""
    if given.is_floating_point() or given.is_complex():
        raise QuantityError(f"{name} is {given.dtype}; integers 0 and 1, or bools, are expected")
    return given


def hashes(tensor: Tensor) -> Tensor:
    """A number for each entry along the first axis, the same for the same bits; int64 (n,).

    Examples
    --------
    >>> one, two, three = hashes(torch.tensor([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]])).tolist()
    >>> one == three, one == two
    (True, False)
    """
    values = tensor.detach() if tensor.layout is torch.strided else wide(tensor)
    values = torch.view_as_real(values) if values.is_complex() else values
    rows = values.contiguous().reshape(len(values), math.prod(values.shape[1:]))
    words = rows.view(_WORDS[rows.element_size()])
    at_once = max(1, AT_ONCE // max(1, words.size(1)))
    factors = _factors(words.size(1), words.device)
    # Products wrap modulo 2**64, where an odd factor can be inverted: a change of one word always
    # changes the sum.
    return torch.cat([(part.long() * factors).sum(1) for part in words.split(at_once)])


@lru_cache(maxsize=4)
def _factors(n: int, device: torch.device) -> Tensor:
    """Return random odd numbers, so that a sum of products distinguishes rows."""
    random = torch.Generator().manual_seed(SEED)
    return sent(torch.randint(-(2**62), 2**62, (n,), generator=random) * 2 + 1, device)


def _counts_of(values: Tensor, counted: Tensor) -> Tensor:
    """Count how often each distinct value occurs, with zeros, without waiting for the device."""
    # torch.unique would wait for the device, as the size of its result depends on the values.
    order = values.argsort()
    ordered, counted = values[order], counted[order]
    place = torch.zeros_like(ordered)
    place[1:] = (ordered[1:] != ordered[:-1]).cumsum(0)
    wide = torch.float32 if values.device.type == "mps" else torch.float64
    counts = torch.zeros(len(values), dtype=wide, device=values.device)
    return counts.index_add_(0, place, counted.to(wide))
