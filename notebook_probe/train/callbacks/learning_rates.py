"""Range test of learning rates, to find one to start with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from notebook_probe.checks import whole_number
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset, begin_again
from notebook_probe.train.generators import same_generators
from notebook_probe.train.trainer.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LearningRates", "find_learning_rate"]

DIVERGED = 4.0
"""Multiple of the smallest smoothed loss at which the test ends."""

SMOOTH = 0.95


@dataclass(frozen=True)
class LearningRates:
    """Result of a range test.

    Attributes
    ----------
    rates, losses : array
        Losses by learning rate, smoothed: l ← 0.95·l + 0.05·loss, without its bias towards 0.
    """

    rates: np.ndarray[Any, np.dtype[np.float64]]
    losses: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def suggestion(self) -> float:
        """Learning rate at which the loss falls fastest per factor; NaN for a few points.

        The first tenth, at most ten points, is ignored, because few values are averaged there.
        """
        n_first = min(10, len(self.rates) // 10)
        rates, losses = self.rates[n_first:], self.losses[n_first:]
        if len(rates) < 4:
            return math.nan
        slopes = np.gradient(losses, np.log(rates))
        return float(rates[int(np.argmin(slopes))])

    def figure(self) -> Figure:
        """Return the curve, with the suggestion marked."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        axes.semilogx(self.rates, self.losses)
        axes.axvline(self.suggestion, linestyle=":", label=f"{self.suggestion:.2g}")
        axes.set(xlabel="learning rate", ylabel="smoothed loss")
        axes.legend(title="suggestion", frameon=False)
        return figure


def find_learning_rate(
    trainer: Trainer, data: Iterable[Any], low: float = 1e-7, high: float = 10.0, n: int = 100
) -> LearningRates:
    """Train a copy for some steps with growing rates (Smith 2017).

    Parameters
    ----------
    trainer : Trainer
        Trainer to copy; it is not changed, and a run that watches its model records nothing.
    data : iterable
        Batches; iterated again if there are too few.
    low, high : float
        Smallest and largest learning rate; the steps between are equal factors.
    n : int
        Number of learning rates; fewer if the loss grows to four times its minimum.

    Raises
    ------
    ValueError
        The learning rates or the number are not allowed, or the data is empty.
    TypeError
        ``trainer`` is not a trainer; the trainer of a loop is ``loop.trainer``.
    """
    if not isinstance(trainer, Trainer):
        raise TypeError(
            f"find_learning_rate({type(trainer).__name__}): a Trainer is expected; "
            f"a loop has it as loop.trainer"
        )
    if not 0 < low < high < math.inf:
        raise ValueError(f"low={low!r}, high={high!r}; allowed: 0 < low < high")
    n = whole_number("n", n, least=4)
    with same_generators():
        begin_again(data)
        batches = [*islice(Dataset(data), n)]
        begin_again(data)  # so that the training begins at its beginning
    if not batches:
        raise ValueError("find_learning_rate: the data is empty")
    # Equal ratios: by how many orders of magnitude a good rate differs is what is unknown.
    rates = np.geomspace(low, high, n)
    # The twin draws from the generators of the process, as dropout does.
    with same_generators():
        losses = _losses(trainer.twin(), rates, cycle(batches))
    return LearningRates(rates[: len(losses)], np.array(losses))


def _losses(trainer: Trainer, rates: Iterable[float], batches: Iterator[Batch]) -> list[float]:
    losses: list[float] = []
    average, least = 0.0, math.inf
    for i, rate in enumerate(rates, start=1):
        for group in trainer.optimizer.param_groups:
            group["lr"] = rate
        metrics = trainer.train_step_accumulated([*islice(batches, trainer.accumulate)])
        loss = math.inf if metrics is None else float(metrics["loss"])
        average = SMOOTH * average + (1 - SMOOTH) * loss
        # An average that begins at 0 is too small at first; this is Adam's correction of it.
        smooth = average / (1 - SMOOTH**i)
        # Not `>=`, which is false of NaN, too: NaN has to end the test.
        if not smooth < DIVERGED * least and i > 1:
            break
        least = min(least, smooth)
        losses.append(smooth)
    return losses
