"""Samples that were right and are wrong again: what a network forgets while it learns."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.labelled_logits import labelled
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import sent

__all__ = ["ForgettingEvents"]

UNSEEN, WRONG, RIGHT = 0, 1, 2


@window_quantity(combine="sum", source="https://arxiv.org/abs/1812.05159", question=questions.DATA)
class ForgettingEvents:
    """Number of samples that were forgotten, ``#(right when last seen, wrong now)``.

    Since the last due step. It needs ``run.batch(targets=y, indices=i)`` before the forward pass,
    ``indices`` being the samples' places in the data set; one byte is remembered of each. Many
    while the learning rate is high is usual. Samples that are never forgotten can often be left
    out of the data, in the source.

    Warnings
    --------
    There are none in the first epoch, when every sample is new. Indices on an accelerator are
    waited for: hand over those of the loader, which are on the host.
    """

    def __init__(self) -> None:
        # One byte for each sample of the data set.
        self._last = torch.zeros(0, dtype=torch.uint8)
        self._is_whole = True

    def reset(self) -> None:
        """Reset the count; which samples were right stays known."""
        self._n: Tensor | None = None

    def begin_late(self) -> None:
        """Give no value: earlier predictions are unknown."""
        self._is_whole = False

    def update(self, output: Tensor, batch_targets: Tensor, batch_indices: Tensor) -> None:
        parts = [(found.is_right, found.counts) for found in labelled(output, batch_targets)]
        right, counted = (torch.cat(part) for part in zip(*parts, strict=True))
        indices = batch_indices.detach().reshape(-1)
        if len(indices) != len(right):
            raise QuantityError(
                f"{len(indices)} indices for {len(right)} predictions; one of each per sample is "
                f"expected"
            )
        if int(indices.min()) < 0:
            raise QuantityError(f"index {int(indices.min())}; numbers from 0 are expected")
        self._make_room(int(indices.max()) + 1, right.device)
        indices = sent(indices, right.device)
        before = self._last[indices]
        forgotten = ((before == RIGHT) & ~right & counted).sum()
        now = torch.where(right, RIGHT, WRONG).to(torch.uint8)
        self._last[indices] = torch.where(counted, now, before)
        self._n = forgotten if self._n is None else self._n + forgotten

    def _make_room(self, n: int, device: torch.device) -> None:
        last = sent(self._last, device)
        # At least doubled, so that indices that rise one by one do not copy it each time.
        more = torch.full((max(0, max(n, 2 * len(last)) - len(last)),), UNSEEN, device=device)
        self._last = torch.cat([last, more.to(torch.uint8)]) if n > len(last) else last

    def compute(self) -> Tensor | None:
        return self._n if self._is_whole else None
