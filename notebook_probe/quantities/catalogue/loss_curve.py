"""The course of the loss: of what the training loop logs, else of what it calls ``backward()`` on.

The loss itself needs no quantity: it is recorded as it is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantities
from notebook_probe.quantities.define.numbers import COMBINE
from notebook_probe.quantities.define.window import window_quantity

__all__ = ["EVALUATED", "LossEma", "LossSpikeScore", "TrainEvalGap"]

quantities.instead(
    "loss",
    "run.log(loss=loss) records it, else backward_loss has it, if a backward is seen; of its "
    "course there are loss_ema, loss_spike_score and train_eval_gap",
)

SLOWEST = 0.01
"""Weight of a new loss in the average, once there are 100."""

FORGOTTEN = 700
"""Losses after which less than a thousandth of the average is of those before."""

HISTORY = 64
"""Losses that a new one is compared with."""

FEWEST = 8
"""Least number of losses for a score."""

EVALUATED = ("eval_loss", "val_loss", "valid_loss", "validation_loss", "test_loss")
"""Names under which the loss of an evaluation may be logged; the first of them counts."""


@window_quantity(source="GoMLX", question=questions.PROGRESS)
class LossEma:
    """Moving average of the loss, ``m <- m (1 - w) + w L``, ``w = max(0.01, 1 / n)``.

    The mean of the first 100 losses and exponential after that, so that it has no bias towards
    where it began. A level for several hundred steps: nothing is learned any more.

    Warnings
    --------
    It lags behind by some 100 steps. A loss that is not finite is left out, and begins no average;
    `loss_spike_score` shows it.
    """

    n, mean, n_missing = 0, 0.0, 0

    def reset(self) -> None:
        """Reset nothing: the average continues."""

    def begin_late(self) -> None:
        """Give no value until earlier losses would be forgotten."""
        self.n_missing = FORGOTTEN

    def update(self, logged_loss: float) -> None:
        # One infinite loss would make every later average infinite.
        if math.isfinite(logged_loss):
            self.n, self.n_missing = self.n + 1, max(0, self.n_missing - 1)
            # 1 / n at first: a plain mean, without the bias of an average that starts at 0.
            weight = max(SLOWEST, 1 / self.n)
            self.mean = self.mean * (1 - weight) + logged_loss * weight

    def compute(self) -> float | None:
        return self.mean if self.n and not self.n_missing else None


@window_quantity(source="robust z-score", question=questions.SPIKE)
class LossSpikeScore:
    """Jump of the loss out of its past, ``(L - median) / (1.4826 MAD)``.

    Median and median absolute deviation are of the 64 losses before it; the largest score since the
    last due step counts, so that no spike is missed between two. For steady noise it stays below 4;
    above 6 is a spike. NaN or infinite where the loss is.

    Warnings
    --------
    Missing until 8 losses are there, and where all of the past is equal. While the loss falls
    fast the score is far below 0, and a small spike hides.
    """

    def __init__(self) -> None:
        self._past: deque[float] = deque(maxlen=HISTORY)
        self._fewest = FEWEST

    def reset(self) -> None:
        """The past stays."""
        self._scores: list[float] = []

    def begin_late(self) -> None:
        """Give no value until the history is complete."""
        self._fewest = HISTORY

    def update(self, logged_loss: float) -> None:
        score = self._score(logged_loss)
        self._scores += [] if score is None else [score]
        # A NaN among the past losses would make every median NaN.
        if math.isfinite(logged_loss):
            self._past.append(logged_loss)

    def _score(self, loss: float) -> float | None:
        if not math.isfinite(loss):
            return loss
        if len(self._past) < self._fewest:
            return None
        middle = median(self._past)
        # 1.4826 MAD estimates the standard deviation of normal noise, and one spike does not raise
        # it.
        spread = 1.4826 * median([abs(past - middle) for past in self._past])
        return (loss - middle) / spread if spread > 0 else None

    def compute(self) -> float | None:
        return COMBINE["max"](self._scores) if self._scores else None


@window_quantity(source="definition", question=questions.PROGRESS)
class TrainEvalGap:
    """Gap between an evaluation's loss and the training's, ``L_eval - mean L_train``.

    The evaluation is logged as ``run.log(eval_loss=..., phase="eval")`` (``val_loss``,
    ``test_loss`` are known too); the mean is of the training losses since the evaluation before.
    It has a value where an evaluation was logged since the last due step. A gap that widens while
    the training loss falls is overfitting.

    Warnings
    --------
    Dropout and augmentation make the training loss the larger one: the gap may begin below 0. With
    BatchNorm see `bn_mean_tid` first.
    """

    def __init__(self) -> None:
        self._total, self._n = 0.0, 0
        self._is_whole = True

    def reset(self) -> None:
        """Reset the gap; the mean continues until the next evaluation."""
        self._gap: float | None = None

    def begin_late(self) -> None:
        """Give no value at the next evaluation: some losses before it are unknown."""
        self._is_whole = False

    def update(self, logged: Mapping[str, float]) -> None:
        loss = logged.get("loss")
        if loss is not None:
            self._total, self._n = self._total + loss, self._n + 1
        evaluated = [logged[name] for name in EVALUATED if name in logged]
        if evaluated and self._n:
            self._gap = evaluated[0] - self._total / self._n if self._is_whole else None
            self._total, self._n, self._is_whole = 0.0, 0, True

    def compute(self) -> float | None:
        return self._gap
