"""Shares of an output, or of a gradient, that are silent, dead or broken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.peaks import Peaks
from notebook_probe.quantities.reduce.reductions import Traced, reduction
from notebook_probe.quantities.reduce.samples import (
    channelled,
    sample_blocks,
    traced_channels,
    widest_type,
)
from notebook_probe.quantities.reduce.stat import Stat

__all__ = [
    "DeadFraction",
    "LinearDeadFraction",
    "Magnitudes",
    "dormant_fraction",
    "grad_zero_fraction",
    "magnitudes",
    "nonfinite_fraction",
    "zero_fraction",
]

DORMANT = 0.025
"""Share of the usual activity below which a unit is called dormant."""


@quantity(source="definition", question=questions.DEAD, bounds=(0, 1))
def zero_fraction(output_zeros: Stat) -> float:
    """Share of outputs that are exactly zero now, ``#(y = 0) / n``.

    How much of a ReLU is silent. About half is usual after a ReLU on centred inputs. Rising
    towards 1, less and less gets through; 0 where the activation has no flat part.

    Warnings
    --------
    A unit that is silent on this batch may fire on the next: `dead_fraction` tells those
    apart. Dropout and padding make zeros, too.
    """
    return output_zeros.n_zero / output_zeros.n if output_zeros.n else math.nan


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def nonfinite_fraction(output_nonfinite: Stat) -> float:
    """Share of outputs that are NaN or infinite, ``#(NaN or inf) / n``; 0 in a healthy network.

    The module nearest the input that leaves 0 first is where it began; everything behind it
    follows in the same step.

    Warnings
    --------
    A later operation can hide it: a mask, or ``nan_to_num``, puts a number in its place.
    """
    return output_nonfinite.n_nonfinite / output_nonfinite.n if output_nonfinite.n else math.nan


@quantity(source="Cockpit", question=questions.DEAD, bounds=(0, 1))
def grad_zero_fraction(grad_zeros: Stat) -> float:
    """Share of gradient elements that are exactly zero, ``#(g = 0) / n``.

    Over all parameters below the module. Parameters without a gradient do not learn. The share is
    high behind dead units, in embeddings whose words do not occur, and where a mask or a branch
    cuts the gradient off.

    Warnings
    --------
    Values too small for the type become zero as well: compare `output_grad_underflow_fraction`.
    """
    return grad_zeros.n_zero / grad_zeros.n if grad_zeros.n else math.nan


class _DeadUnits:
    """The share of units whose outputs never came above a threshold."""

    threshold: float

    def reset(self) -> None:
        self._largest: Tensor | None = None

    def update(self, output_peaks: Peaks) -> None:
        if not output_peaks.n_rows:
            return
        before, now = self._largest, output_peaks.largest
        is_same = before is not None and before.shape == now.shape
        self._largest = torch.maximum(before, now) if before is not None and is_same else now

    def compute(self) -> Tensor | None:
        if self._largest is None:
            return None
        is_dead = (self._largest <= self.threshold).double()
        # NaN <= 0 is False, which would count a broken unit as alive.
        return is_dead.where(~self._largest.isnan(), torch.nan).mean()


@window_quantity(source="definition", question=questions.DEAD, bounds=(0, 1))
class DeadFraction(_DeadUnits):
    """Share of units never above 0 since the last due step, ``#{c : max y_c <= 0} / C``.

    A unit is a channel, over all samples and positions. Every 50 steps or so it tells units
    that are dead from those that are silent on one batch. A ReLU's dead unit has no gradient
    and stays dead; more than half of them is waste, and usually the work of a learning rate
    that was too high. Missing where an output is NaN. A subclass may have another
    ``threshold``, as `linear_dead_fraction` has.

    Warnings
    --------
    Recorded at every step, it describes one batch only. In a layer without a ReLU, such as a linear
    one, it counts the units that were never positive, which may be fine.
    """

    threshold = 0.0


@window_quantity(
    aliases=("LinearDeadNeuronNum",), source="Taiyi", question=questions.DEAD, bounds=(0, 1)
)
class LinearDeadFraction(_DeadUnits):
    """Share of units never above -2 since the last due step, ``#{c : max y_c <= -2} / C``.

    For a linear layer or a convolution, before its activation: a unit that stays so far below 0 is
    dead behind a ReLU, and nearly silent behind a GELU or a SiLU, which still let some gradient
    through. Taiyi's threshold; a share, despite the name it has there. It begins to rise earlier
    than the `dead_fraction` of the next layers.

    Warnings
    --------
    The threshold is absolute: where outputs are small, as behind a normalisation with a small
    gain, it finds nothing. Recorded at every step it is of one batch only.
    """

    threshold = -2.0


@dataclass(slots=True)
class Magnitudes:
    """Sum of the magnitudes of each channel; float64 (channel,)."""

    sums: Tensor

    def merge(self, other: Magnitudes) -> Magnitudes:
        """Return the sums over the rows of both."""
        if self.sums.shape != other.sums.shape:
            raise QuantityError(
                f"calls with {len(self.sums)} and with {len(other.sums)} channels in one step have "
                f"no common channels"
            )
        return Magnitudes(self.sums + other.sums)


def _traced(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Tensor:
    values, axes = traced_channels(tensor, module)
    return values.double().abs().sum(axes)


def _of_sums(sums: Tensor, n: int, wanted: frozenset[str]) -> Magnitudes:
    return Magnitudes(sums)


@reduction("magnitudes", first_only=True, traced=Traced(_traced, _of_sums))
def magnitudes(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Magnitudes:
    """Add up the magnitudes of each channel, over all samples and positions.

    Examples
    --------
    >>> magnitudes(torch.tensor([[0.0, -1.0], [2.0, -3.0]]), nn.Linear(2, 2)).sums
    tensor([2., 4.], dtype=torch.float64)
    """
    values, axis = channelled(tensor, module)
    wide = widest_type(values)
    blocks = sample_blocks(values, axis, wide)
    nothing = torch.zeros(values.shape[axis], dtype=wide, device=values.device)
    return Magnitudes(sum((block.abs_().sum(0) for block in blocks), nothing))


@quantity(source="https://arxiv.org/abs/2302.12902", question=questions.DEAD, bounds=(0, 1))
def dormant_fraction(output_magnitudes: Magnitudes) -> Tensor:
    """Share of units that hardly act, ``#{i : E|h_i| <= 0.025 mean_k E|h_k|} / C``.

    Also finds units of tanh or GELU that have gone quiet. A rise over training means that the
    network loses the ability to fit what is new, which was found in reinforcement learning
    first. Missing where no unit is active at all, or an output is not finite.

    Warnings
    --------
    Relative to the layer's mean: one very large unit makes all others dormant.
    """
    size = output_magnitudes.sums
    usual = size.mean()
    # All zero or infinite: no usual size to compare with.
    known = (usual > 0) & (usual < torch.inf)
    return (size / usual <= DORMANT).double().mean().where(known, torch.nan)
