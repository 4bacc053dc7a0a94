"""Histograms of chosen parameters: probes on each of them, due when data is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.quantities.catalogue.equal_bins import MOST_BINS
from notebook_probe.run.handle import Handle
from notebook_probe.run.run import Run
from notebook_probe.schedules import Schedule
from notebook_probe.summary.budget import ByteCounter
from notebook_probe.summary.moment import FLOAT, Item, Moment
from notebook_probe.summary.settings import REGULAR, CollectorSettings

__all__ = ["QUANTITIES", "HistogramItem", "chosen", "in_order_of"]

QUANTITIES = (
    "param_histogram",
    "weight_min",
    "weight_max",
    "weight_sum",
    "n_weight_nan",
    "n_weight_posinf",
    "n_weight_neginf",
)
STREAM = QUANTITIES[0]
FIRST = 5
"""Default number of parameters, without an expression."""


class HistogramItem(Item):
    """Attaches `param_histogram` and what tells its edges to the parameters that are chosen.

    Parameters
    ----------
    pattern : str or None
    """

    name = REGULAR

    def __init__(self, pattern: str | None) -> None:
        super().__init__()
        self._pattern = pattern
        self._run: Run | None = None
        self._handle: Handle | None = None

    @classmethod
    def read(cls, settings: CollectorSettings) -> HistogramItem | None:
        """Return the item, if its key is given."""
        has_key = REGULAR in settings.specified
        return cls(settings.specified[REGULAR]) if has_key else None

    def start(self, moment: Moment) -> None:
        """Attach to the run that records from here on.

        Raises
        ------
        ValueError
            The expression fits no parameter.
        """
        if self._run is moment.run:
            return
        self._run = moment.run
        names = chosen(in_order_of(moment.optimizers, moment.model), self._pattern)
        if not names:
            n = len(list(moment.model.parameters()))
            raise ValueError(f"{self._pattern!r} is the beginning of none of {n} parameters' names")
        n_bytes = FLOAT * len(names) * (MOST_BINS + len(QUANTITIES) - 1)
        granted = _Granted(moment.schedule, moment.budget, n_bytes)
        self._handle = moment.run.attach(names, QUANTITIES, granted)

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


class _Granted:
    """A schedule that is due as long as there is room for another row."""

    def __init__(self, schedule: Schedule, budget: ByteCounter, n_bytes: int) -> None:
        self._schedule, self._budget, self._n_bytes = schedule, budget, n_bytes
        self.stream = schedule.stream
        self._last = -1, False

    def __call__(self, step: int) -> bool:
        if not self._schedule(step):
            return False
        if step != self._last[0]:  # asked twice of a step it is one row
            self._last = step, self._budget.takes(STREAM, self._n_bytes)
        return self._last[1]

    def __str__(self) -> str:
        return str(self._schedule)


def in_order_of(optimizers: Iterable[Optimizer], model: nn.Module) -> list[str]:
    """Names of the model's parameters that are trained, as the optimizers have them.

    For an unknown optimizer, the model's own order.

    Examples
    --------
    >>> import torch
    >>> layer = nn.Linear(2, 1)
    >>> in_order_of([torch.optim.SGD([layer.bias, layer.weight], 0.1)], layer)
    ['bias', 'weight']
    """
    # By identity, as tensors compare element by element.
    names = {id(value): name for name, value in model.named_parameters()}
    owned: list[Tensor] = [
        value for one in optimizers for group in one.param_groups for value in group["params"]
    ]
    found = [names[id(value)] for value in owned if id(value) in names]
    return found or [name for name, value in model.named_parameters() if value.requires_grad]


def chosen(names: Sequence[str], pattern: str | None) -> list[str]:
    """Return the names whose start matches the expression; the first five without one.

    Examples
    --------
    >>> chosen(["conv1.weight", "conv1.bias", "fc.weight"], r"conv.*weight|fc")
    ['conv1.weight', 'fc.weight']
    """
    if pattern is None:
        return [*names[:FIRST]]
    return [name for name in names if re.match(pattern, name)]
