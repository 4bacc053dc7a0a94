"""Schedulers of every kind that torch has, and an optimizer that keeps the rates it steps with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer, lr_scheduler

Schedule: TypeAlias = Callable[[Optimizer], Any]
"""Makes a scheduler of an optimizer."""


class Seen(SGD):
    """Keeps the options of its groups with which each of its steps is done."""

    def __init__(self, params: Iterable[Any], lr: float | Tensor = 0.1, **options: Any) -> None:
        super().__init__(params, lr=lr, foreach=False, **options)
        self.used: list[list[float]] = []
        self.momenta: list[float] = []

    def step(self, closure: Any = None) -> Any:
        self.used.append([float(group["lr"]) for group in self.param_groups])
        self.momenta.append(float(self.param_groups[0]["momentum"]))
        return super().step(closure)

    @property
    def rates(self) -> list[float]:
        """Those of its first group."""
        return [rates[0] for rates in self.used]


def _sequential(optimizer: Optimizer) -> Any:
    warm_up = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=3)
    then = lr_scheduler.CosineAnnealingLR(optimizer, T_max=6, eta_min=0.01)
    return lr_scheduler.SequentialLR(optimizer, [warm_up, then], milestones=[4])


def _chained(optimizer: Optimizer) -> Any:
    decay = lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    return lr_scheduler.ChainedScheduler([decay, lr_scheduler.StepLR(optimizer, 3, gamma=0.5)])


SCHEDULES: dict[str, Schedule] = {
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step)),
    "multiplicative": lambda o: lr_scheduler.MultiplicativeLR(o, lambda step: 0.8),
    "step": lambda o: lr_scheduler.StepLR(o, step_size=3, gamma=0.3),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, gamma=0.7),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, total_iters=20, power=2.0),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=5, eta_min=0.02),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=4, eta_min=0.001),
    "one_cycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=1.0, total_steps=40),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, base_lr=0.1, max_lr=0.9, step_size_up=3),
    "sequential": _sequential,
    "chained": _chained,
}
"""Those that step by themselves."""


def plain_rates(schedule: Schedule, n_steps: int, lr: float | Tensor = 0.1) -> list[float]:
    """What a scheduler says of each step, of an optimizer that nobody watches."""
    optimizer = Seen([torch.zeros(1, requires_grad=True)], lr, momentum=0.9)
    scheduler = schedule(optimizer)
    for _ in range(n_steps):
        optimizer.step()
        scheduler.step()
    return optimizer.rates


def expected_rates(scheduled: list[float], sets: dict[int, float]) -> list[float]:
    """The schedule times the factor of the last that was set, step by step."""
    factor, rates = 1.0, []
    for step, rate in enumerate(scheduled):
        if step in sets:
            factor = sets[step] / rate
        rates.append(rate * factor)
    return rates
