"""Statistics of an optimizer's steps, for collectors in a trainer's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.probes.parameters.ownership import Ownership
from notebook_probe.probes.step.optimizer_steps import listen
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.quantities.reduce.device_stat import DeviceStat
from notebook_probe.quantities.reduce.measure import STAT, measure_differences
from notebook_probe.quantities.reduce.stat import Stat
from notebook_probe.train.collector.data_collector import DataCollector

__all__ = [
    "OPTIMIZER_GLOBAL_STEP",
    "OPTIMIZER_GRADS_L2NORM",
    "OPTIMIZER_GRADS_L2_COLLECTOR",
    "TRAINER_LOG_STEP_SIZE_L2NORM",
    "TRAINER_LOG_STEP_SIZE_L2_COLLECTOR",
    "OptimizerSeries",
]

OPTIMIZER_GRADS_L2NORM = "optimizer_grads_l2norm"
"""Name of the series of gradient norms, as they are applied."""
TRAINER_LOG_STEP_SIZE_L2NORM = "trainer_log_step_size_l2norm"
"""Name of the series of logarithms of the length of updates."""
OPTIMIZER_GLOBAL_STEP = "optimizer_global_step"
"""Name of the series of updates completed."""

OPTIMIZER_GRADS_L2_COLLECTOR = "optimizer_grads_l2_collector"
"""Key of a trainer's context: the collector that gets gradient norms."""
TRAINER_LOG_STEP_SIZE_L2_COLLECTOR = "trainer_log_step_size_l2_collector"
"""Key of a trainer's context: the collector that gets step sizes."""

SUMSQ = frozenset({"sumsq"})


class OptimizerSeries:
    """Pass statistics of an optimizer's steps to the collectors of a context.

    That under ``"optimizer_grads_l2_collector"`` gets ``optimizer_grads_l2norm``, ``||g||_2`` of
    all gradients as they are applied. That under ``"trainer_log_step_size_l2_collector"`` gets
    ``trainer_log_step_size_l2norm``, ``ln ||w_after - w_before||_2`` over all parameters that are
    trained, which is minus infinity where nothing moved. Each gets ``optimizer_global_step``, the
    updates completed, too. A number that does not exist, as when no parameter has a gradient, is
    NaN, and counted as missing.

    They are the quantities `grad_norm` and `log_step_size` of the optimizer's parameters. Nothing
    is computed for a collector that is not attached. Where several optimizers update in one step,
    each has separate numbers. Statistics end when this object is dropped.

    Parameters
    ----------
    model : nn.Module
        Held weakly; steps of optimizers that have parameters of it count.
    context : dict
        The context of a trainer; a collector that is added later counts from the next step on.

    Raises
    ------
    TypeError
        An entry under one of the keys is no `DataCollector`.

    Examples
    --------
    >>> model = nn.Linear(2, 1, bias=False)
    >>> collector = DataCollector().collect_all()
    >>> handle = collector.attach_to_executor(model)
    >>> series = OptimizerSeries(model, {"optimizer_grads_l2_collector": collector})
    >>> model(torch.tensor([3.0, 4.0])).backward()
    >>> torch.optim.SGD(model.parameters(), lr=0.1).step()
    >>> collector.get_series_values("optimizer_grads_l2norm")
    [5.0]
    >>> collector.get_series_values("optimizer_global_step")
    [1.0]
    >>> series.remove()
    """

    can_be_interrupted, rests_until = False, 0
    """The numbers of a step can be computed at its end only, and each update has some."""

    def __init__(self, model: nn.Module, context: Mapping[str, Any]) -> None:
        self._context = context
        self._ownership = Ownership(model)
        self._norm: Tensor | None = None
        self._before: list[tuple[Tensor, Tensor]] = []
        for key in (OPTIMIZER_GRADS_L2_COLLECTOR, TRAINER_LOG_STEP_SIZE_L2_COLLECTOR):
            self._under(key)
        self._end = listen(self)

    def remove(self) -> None:
        """Collect nothing more; calling it twice is fine."""
        self._end()

    def step_begins(self, optimizer: Optimizer) -> None:
        """Copy the weights before the step; see `Listener`."""
        self._norm, self._before = None, []
        if self._is_wanted(optimizer, TRAINER_LOG_STEP_SIZE_L2_COLLECTOR):
            trained = [weight for weight in _parameters(optimizer) if weight.requires_grad]
            self._before = [(weight, local(weight.detach()).clone()) for weight in trained]

    def update_comes(self, optimizer: Optimizer) -> None:
        """Copy the weights, and measure the gradients; see `Listener`."""
        self.step_begins(optimizer)
        self.gradients_ready(optimizer)

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """Measure the gradients, those of a closure's last run; see `Listener`."""
        if self._is_wanted(optimizer, OPTIMIZER_GRADS_L2_COLLECTOR):
            gradients = [weight.grad for weight in _parameters(optimizer)]
            norm = _length(STAT.measure_all([g for g in gradients if g is not None], SUMSQ))
            scale = getattr(optimizer, "grad_scale", None)  # of a fused optimizer, while it steps
            self._norm = norm if norm is None or scale is None else norm / scale.to(norm.device)

    def step_ends(self, optimizer: Optimizer) -> None:
        """Measure the change of the weights, and pass the results on; see `Listener`."""
        if not self._ownership.has(optimizer):
            return
        found = {}
        if (collector := self._under(OPTIMIZER_GRADS_L2_COLLECTOR)) is not None:
            _give(collector, OPTIMIZER_GRADS_L2NORM, self._norm, "no gradient")
            found[id(collector)] = collector
        if (collector := self._under(TRAINER_LOG_STEP_SIZE_L2_COLLECTOR)) is not None:
            news = [local(new.detach()) for new, _ in self._before]
            olds = [old for _, old in self._before]
            moved = _length(measure_differences(news, olds, SUMSQ))
            size = None if moved is None else moved.log()
            _give(collector, TRAINER_LOG_STEP_SIZE_L2NORM, size, "no parameter")
            found[id(collector)] = collector
        for collector in found.values():
            if (step := collector.step) is not None:
                collector.collect(step + 1, OPTIMIZER_GLOBAL_STEP)
        self._norm, self._before = None, []

    def _is_wanted(self, optimizer: Optimizer, key: str) -> bool:
        collector = self._under(key)
        is_open = collector is not None and collector.step is not None
        return is_open and self._ownership.has(optimizer)

    def _under(self, key: str) -> DataCollector | None:
        found = self._context.get(key)
        if found is not None and not isinstance(found, DataCollector):
            raise TypeError(
                f"context[{key!r}]: {type(found).__name__}; a DataCollector is expected"
            )
        return found


def _give(collector: DataCollector, series: str, number: Tensor | None, reason: str) -> None:
    if number is None:
        collector.miss(series, reason)
    else:
        collector.collect(number, series)


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def _length(stats: Sequence[Stat | DeviceStat]) -> Tensor | None:
    """Return the root of the sum of all squares, on their device; None without any."""
    squares = [torch.as_tensor(stat.sumsq, dtype=torch.float64) for stat in stats]
    if not squares:
        return None
    device = squares[0].device
    return torch.stack([square.to(device) for square in squares]).sum().sqrt()
