"""An option of the optimizers of a model, such as their learning rate, as something to set."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.errors import SettingError
from notebook_probe.json_numbers import json_number
from notebook_probe.probes.step.live_options import GroupOption, LiveOptions, live_options
from notebook_probe.run.settings.group_text import group_text, owners_text
from notebook_probe.run.settings.setting import Before, Change, GroupInfo, KnobInfo, check_range

__all__ = ["OptimizerOption", "optimizer_options"]

RATE = "lr"
LOG = frozenset({RATE, "weight_decay"})
LOW = 0.0
"""torch's optimizers allow nothing below it."""


class _Group(NamedTuple):
    """One group, counted through all optimizers of the model."""

    number: int
    optimizer: Optimizer
    place: GroupOption
    outer: Sequence[tuple[Optimizer, GroupOption]]
    """Optimizers that wrap this one, with the same group."""

    @property
    def live(self) -> LiveOptions:
        return live_options(self.optimizer)

    @property
    def has_it(self) -> bool:
        options = self.optimizer.param_groups[self.place.group]
        return _is_settable(self.place.name, options.get(self.place.name))

    def value(self) -> float:
        return self.live.value(self.optimizer, self.place) if self.has_it else math.nan

    @property
    def scheduled(self) -> float | None:
        return self.live.scheduled(self.optimizer, self.place)

    @property
    def is_held(self) -> bool:
        return self.live.is_held(self.place)

    def info(self) -> GroupInfo:
        text = group_text(self.optimizer, self.place.group)
        return GroupInfo(text, self.scheduled if self.has_it else None, self.is_held)

    def set(self, value: float, hold: bool) -> None:
        for optimizer, place in self.outer:
            live_options(optimizer).forget(place)
        put = self.live.hold if hold else self.live.set
        put(self.optimizer, self.place, value)

    def release(self) -> None:
        self.live.forget(self.place)


class OptimizerOption:
    """A number in the parameter groups of the optimizers, counted through all of them.

    Parameters
    ----------
    name : str
    optimizers : sequence of Optimizer
        Optimizers in the order in which they were found.
    """

    def __init__(self, name: str, optimizers: Sequence[Optimizer]) -> None:
        self._name = name
        holders: defaultdict[int, list[tuple[Optimizer, GroupOption]]] = defaultdict(list)
        for optimizer in optimizers:
            for index, group in enumerate(optimizer.param_groups):
                # A wrapper shares the groups of the optimizer inside: by identity each counts once.
                holders[id(group)].append((optimizer, GroupOption(index, name)))
        self._groups = [
            _Group(number, *innermost, outer)  # which was met last
            for number, (*outer, innermost) in enumerate(holders.values())
        ]

    def info(self) -> KnobInfo:
        values = tuple(group.value() for group in self._groups)
        value = values[0] if len({*values}) == 1 else math.nan
        info = KnobInfo(self._name, value, LOW, None, self._name in LOG, values)
        return self._detailed(info) if self._name == RATE else info

    def _detailed(self, info: KnobInfo) -> KnobInfo:
        owners = owners_text([one.optimizer for one in self._groups], len(self._groups))
        return replace(info, of=owners, details=tuple(one.info() for one in self._groups))

    def check(self, value: float, group: int | None, hold: bool) -> None:
        check_range(self._name, value, LOW, None)
        for one in self._chosen(group):
            if one.scheduled == 0 != value and not hold:
                raise SettingError(
                    f"{self._name}={value:g}: the schedule of group {one.number} is at 0 now, of "
                    f"which there is no factor; set it again once that has moved on, or with "
                    f"hold=True"
                )

    def set(self, value: float, group: int | None, hold: bool) -> Change | None:
        groups = self._chosen(group)
        before = [one.value() for one in groups]
        if all(one == value for one in before) and all(one.is_held == hold for one in groups):
            return None
        is_late = any(one.live.is_stepping(one.optimizer) for one in groups)
        for one in groups:
            one.set(float(value), hold)
        how = ", held" if hold else _factors(value, [one.scheduled for one in groups])
        return Change(_joined(before), value, self._text(before, value, group) + how, is_late)

    def release(self, group: int | None) -> Change | None:
        groups = [one for one in self._chosen(group) if one.scheduled is not None]
        before, scheduled = [one.value() for one in groups], [one.scheduled for one in groups]
        for one in groups:
            one.release()
        if before == scheduled:
            return None
        after = [one.value() for one in groups]
        text = f"{self._text(before, after[0], group)}, as scheduled"
        return Change(_joined(before), _joined(after), text)

    def _chosen(self, group: int | None) -> list[_Group]:
        n = len(self._groups)
        if group is None:
            groups = self._groups
        elif isinstance(group, int) and not isinstance(group, bool) and 0 <= group < n:
            groups = [self._groups[group]]
        else:
            known = "group 0" if n == 1 else f"groups 0 to {n - 1}"
            raise SettingError(f"{self._name}, group={group!r}: the optimizers have {known}")
        without = [one for one in groups if not one.has_it]
        if without:
            number, optimizer, *_ = without[0]
            having = ", ".join(str(one.number) for one in self._groups if one.has_it)
            raise SettingError(
                f"{self._name}: group {number} ({type(optimizer).__name__}) has none; "
                f"group {having} has: give it as group="
            )
        return groups

    def _text(self, before: Sequence[float], value: float, group: int | None) -> str:
        of = "" if group is None else f" of group {group}"
        known = ", ".join(dict.fromkeys(f"{one:.6g}" for one in before))
        return f"{self._name}{of} {known} → {value:.6g}"


def _factors(value: float, scheduled: Sequence[float | None]) -> str:
    """Describe the ratio of the new value to the scheduled one, if there is one."""
    factors = dict.fromkeys(f"{value / one:.4g}" for one in scheduled if one)
    return f", {' and '.join(factors)} of the scheduled value" if factors else ""


def _joined(values: Sequence[float]) -> Before:
    """Return one number if all are equal, as JSON."""
    finite = [json_number(one) for one in values]
    return finite[0] if len({*finite}) == 1 else finite


def optimizer_options(optimizers: Sequence[Optimizer]) -> dict[str, OptimizerOption]:
    """Every option that can be set in one group at least, the learning rate first."""
    names = {
        name: None
        for optimizer in optimizers
        for group in optimizer.param_groups
        for name, value in [*group.items()]
        if name in optimizer.defaults and _is_settable(name, value)
    }
    return {name: OptimizerOption(name, optimizers) for name in sorted(names, key=_rate_first)}


def _rate_first(name: str) -> bool:
    return name != RATE


def _is_settable(name: str, value: Any) -> bool:
    """Return whether it is a number that can be set; 0 may also be a count, as in SGD."""
    if isinstance(value, Tensor):
        return name == RATE and value.numel() == 1
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return name == RATE or (value >= LOW and (isinstance(value, float) or value == 0))
