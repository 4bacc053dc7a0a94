"""The losses of samples by bucket, both handed over by the loop: ``run.batch(losses=, buckets=)``.

A bucket is a whole number from 0 that the loop computes for each sample, from whatever the loss may
depend on: ``timesteps * 10 // 1000`` of a diffusion model, ``torch.bucketize(lengths, edges)``, a
class, the number of a data source.
"""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.sample_losses import losses_of
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import sent, tallied

__all__ = ["LossByBucket", "SamplesByBucket", "places_of"]

N_BUCKETS = 128

BUCKETS = Axis("bucket", {"bucket": tuple(map(float, range(N_BUCKETS)))}, group="buckets")
"""The last bucket holds all samples with its number or a larger one."""


def places_of(batch_buckets: Tensor) -> Tensor:
    """Return the place of each sample on the axis, int64 (n,).

    It is `N_BUCKETS` for a sample that is left out. Nothing waits for the device.

    Raises
    ------
    QuantityError
        For anything but whole numbers.

    Examples
    --------
    >>> places_of(torch.tensor([0, 3, 1000, -1])).tolist()
    [0, 3, 127, 128]
    """
    if batch_buckets.is_floating_point() or batch_buckets.is_complex():
        raise QuantityError(
            f"buckets are {batch_buckets.dtype}; whole numbers from 0 are expected, as of "
            f"(t * 10).long() or torch.bucketize(lengths, edges)"
        )
    buckets = batch_buckets.detach().long().reshape(-1)
    return torch.where(buckets < 0, N_BUCKETS, buckets.clamp(max=N_BUCKETS - 1))


@window_quantity(axis=BUCKETS, source="definition", question=questions.DATA)
class LossByBucket:
    """Mean loss of the samples in each bucket, ``sum_(b_i = b) L_i / #(b_i = b)``, a vector.

    Over all samples since the last due step, NaN for a bucket without any. The loop hands over what
    the loss may depend on as a whole number from 0 for each sample, or each token:
    ``run.batch(losses=losses, buckets=timesteps * 10 // 1000)``. A bucket that stays high while the
    others fall is what the model does not learn; the mean over all hides it.

    Warnings
    --------
    Of few samples it is noise: see `samples_by_bucket`. A NaN among the losses makes its bucket
    NaN. The last of the 128 buckets holds all larger numbers, too; negative ones are left
    out.
    """

    def reset(self) -> None:
        self._sums: Tensor | None = None

    def update(self, batch_losses: Tensor, batch_buckets: Tensor) -> None:
        losses = losses_of(batch_losses)
        if batch_buckets.shape == batch_losses.shape:  # of each token
            losses = batch_losses.detach().to(losses.dtype).reshape(-1)
        places = sent(places_of(batch_buckets), losses.device)
        if len(places) != len(losses):
            raise QuantityError(
                f"{len(places)} buckets for {len(losses)} losses; one of each per sample is "
                f"expected, or per token"
            )
        # One row of sums and one of counts.
        both = torch.stack([losses, torch.ones_like(losses)])
        sums = both.new_zeros(2, N_BUCKETS + 1).index_add_(1, places, both)
        self._sums = sums if self._sums is None else sent(self._sums, sums.device) + sums

    def compute(self) -> Tensor | None:
        return None if self._sums is None else (self._sums[0] / self._sums[1])[:N_BUCKETS]


@window_quantity(axis=BUCKETS, source="definition", question=questions.DATA)
class SamplesByBucket:
    """Number of samples in each bucket since the last due step, ``#(b_i = b)``, a vector.

    The loop passes the buckets by ``run.batch(buckets=...)``; see `loss_by_bucket`. NaN
    for a bucket without any: a small or missing one is hardly trained, whatever the mean loss says.

    Warnings
    --------
    The last of the 128 buckets holds all larger numbers, too; negative ones are left out.
    """

    def reset(self) -> None:
        self._counts: Tensor | None = None

    def update(self, batch_buckets: Tensor) -> None:
        counts = tallied(places_of(batch_buckets), N_BUCKETS + 1)
        self._counts = (
            counts if self._counts is None else sent(self._counts, counts.device) + counts
        )

    def compute(self) -> Tensor | None:
        if self._counts is None:
            return None
        counts = self._counts[:N_BUCKETS]
        return torch.where(counts > 0, counts, torch.nan)
