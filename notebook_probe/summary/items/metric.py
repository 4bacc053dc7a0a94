"""The loss of a due unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["MetricItem", "metric_of"]

LOSS = "loss"


class MetricItem(Item):
    """Record ``loss`` where the loop does not record it every step."""

    name = "collect_metric"

    @classmethod
    def read(cls, settings: CollectorSettings) -> MetricItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def given(self, moment: Moment) -> None:
        # A loop that records its metrics has `loss` at every step already.
        if moment.loop is None or not moment.loop.records_metrics:
            moment.log({LOSS: metric_of(moment.loss)})


def metric_of(outputs: Any) -> float | Tensor:
    """Return the number of a step's outputs: the mean of a tensor, of a list its first item's.

    Raises
    ------
    ValueError
        For None, a dict, an empty list, and what is no number.

    Examples
    --------
    >>> import torch
    >>> metric_of(torch.tensor([1.0, 3.0])), metric_of((0.5, "logits"))
    (tensor(2.), 0.5)
    """
    first = outputs
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, Tensor) and first.numel() and not first.is_complex():
        value = first.detach()
        return (value if value.is_floating_point() else value.double()).mean()
    if isinstance(first, int | float | np.number | np.ndarray) and np.size(first):
        return float(np.mean(first))
    kind = "an empty list" if isinstance(outputs, list | tuple) and not outputs else type(first)
    kind = kind if isinstance(kind, str) else f"a {kind.__name__}"
    more = f" with the keys {[*outputs][:4]}" if isinstance(outputs, Mapping) else ""
    raise ValueError(
        f"{kind}{more} is no loss; allowed: a number, a tensor, or a list that begins with one"
    )
