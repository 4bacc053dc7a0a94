"""Quantities of BatchNorm: the statistics used in training against those used in evaluation.

The train/inference discrepancy of https://arxiv.org/abs/2210.05153: the distance of the statistics
of the batches from the running ones, in units of the running deviation. Like Taiyi, over every step
since the last due one, against the running statistics as they are after the due step's forward.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities.catalogue.per_channel import Channels
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = ["BnMeanTid", "BnVarTid", "Running", "running"]

SOURCE = "https://arxiv.org/abs/2210.05153; Taiyi"
EPSILON = 1e-8
MOST_STEPS = 10_000
"""Maximum number of steps of a window; of a longer one the last steps count."""


@dataclass(slots=True)
class Running:
    """The running statistics of a module as its last call left them; float64 (channel,)."""

    mean: Tensor = field(default_factory=lambda: torch.zeros(0))
    deviation: Tensor = field(default_factory=lambda: torch.zeros(0))
    are_used: bool = False
    """The call itself used them, not those of its batch: the module is in evaluation mode."""

    def merge(self, other: Running) -> Running:
        """Return the statistics after the later call."""
        return other


def _statistics(module: nn.Module | None) -> tuple[Any, Any]:
    mean, variance = (getattr(module, f"running_{name}", None) for name in ("mean", "var"))
    return mean, variance


def _misfit(module: nn.Module | None) -> str:
    has_both = all(isinstance(one, Tensor) for one in _statistics(module))
    return "" if has_both else "keeps no running mean and variance"


@reduction("running", first_only=True, misfit=_misfit)
def running(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Running:
    """Copy the running statistics of the module that made a tensor.

    Raises
    ------
    UnreadableError
        A module that keeps none.

    Examples
    --------
    >>> running(torch.zeros(2, 3), nn.BatchNorm1d(3)).deviation
    tensor([1., 1., 1.], dtype=torch.float64)
    """
    module = unwrapped(module)
    if why := _misfit(module):
        raise UnreadableError(f"{type(module).__name__} {why}")
    mean, variance = _statistics(module)
    wide = torch.float64 if mean.device.type != "mps" else torch.float32
    # Copied, since the module's next call updates them in place.
    deviation = variance.detach().to(wide).sqrt()
    return Running(
        mean.detach().to(wide, copy=True), deviation, not getattr(module, "training", True)
    )


@window_quantity(
    name="bn_mean_tid", aliases=("MeanTID",), source=SOURCE, question=questions.BATCHNORM
)
class BnMeanTid:
    """Discrepancy of the mean, ``mean_B ||mu_B - mu_run||_2 / (||sigma_run||_2 + 1e-8)``.

    Over the steps since the last due one. ``mu_B`` is the mean of each channel in a batch,
    ``mu_run`` and ``sigma_run`` are the running statistics, which evaluation uses. Above about
    0.5 the network does not see in evaluation what it was trained on: batches are small, or the
    running mean lags. Missing without running statistics, and where a layer in evaluation mode
    uses them in training, too.

    Warnings
    --------
    Large in the first steps of any training, while the running statistics are still those of
    the initialisation.
    """

    def reset(self) -> None:
        self._means: deque[Tensor] = deque(maxlen=MOST_STEPS)
        self._last = Running()  # a checkpoint is read into it

    def update(self, input_channels: Channels, output_running: Running) -> None:
        self._last = output_running
        if input_channels.n_rows:
            self._means.append(input_channels.mean)

    def compute(self) -> Tensor | None:
        if self._last.are_used or not self._means:
            return None
        return _distance(self._means, self._last.mean, self._last)


@window_quantity(
    name="bn_var_tid", aliases=("VarTID",), source=SOURCE, question=questions.BATCHNORM
)
class BnVarTid:
    """Discrepancy of the spread, ``mean_B ||sigma_B - sigma_run||_2 / (||sigma_run||_2 + 1e-8)``.

    Over the steps since the last due one. ``sigma_B`` is the deviation of each channel in a
    batch, divisor rows less one, ``sigma_run`` that which evaluation uses. Small batches make it
    large. A step with a single row is left out; missing without running statistics, and where a
    layer in evaluation mode uses them in training, too.

    Warnings
    --------
    Large in the first steps of any training, while the running statistics are still those of
    the initialisation.
    """

    def reset(self) -> None:
        self._deviations: deque[Tensor] = deque(maxlen=MOST_STEPS)
        self._last = Running()  # as above

    def update(self, input_channels: Channels, output_running: Running) -> None:
        self._last = output_running
        if input_channels.n_rows > 1:
            # Unbiased, as BatchNorm keeps it in running_var, although it normalizes by the biased
            # variance.
            squares = input_channels.squares / (input_channels.n_rows - 1)
            self._deviations.append(squares.sqrt())

    def compute(self) -> Tensor | None:
        if self._last.are_used or not self._deviations:
            return None
        return _distance(self._deviations, self._last.deviation, self._last)


def _distance(found: Iterable[Tensor], usual: Tensor, last: Running) -> Tensor:
    """Mean distance of what each step had from what runs along."""
    distances = torch.stack([(one - usual).norm() for one in found])
    return distances.mean() / (last.deviation.norm() + EPSILON)
