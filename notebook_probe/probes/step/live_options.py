"""Options of an optimizer's groups that are set while it trains, such as its learning rate.

If nothing schedules an option, it is written, and a later write replaces it. If a scheduler does,
the set value becomes a factor of the schedule: the group still has the scheduled value, and the
factor acts while the optimizer steps. So a scheduler that multiplies the value it finds is as
correct as one that computes it again; the states of optimizer and scheduler contain only the
schedule, and can be loaded anywhere. A factor stays with its optimizer after the end of the run
that set it. A held value is not a factor: it acts itself while the optimizer steps, independent of
the schedule.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.phase import step_is_active
from notebook_probe.uninterrupted import uninterrupted

__all__ = [
    "GroupOption",
    "LiveOptions",
    "has_factors",
    "live_options",
    "options_by_id",
    "rate_of",
]

Option: TypeAlias = "float | Tensor"
Group: TypeAlias = "dict[str, Any]"

rate_of = methodcaller("get", "lr")
"""Return the learning rate of a group, without a call of Python."""
SCHEDULED_BY = {"lr": "initial_lr", "momentum": "base_momentum"}
"""Keys that torch's schedulers leave in the groups whose option they move."""


class GroupOption(NamedTuple):
    """An option of one group."""

    group: int
    name: str


class _Factor(NamedTuple):
    """Factor: ``value`` was set where ``of`` was scheduled; None where it is held."""

    value: float
    of: float | None

    def times(self, scheduled: Option) -> Option:
        """Scale the schedule; exactly ``value`` while it is unchanged, or the option is held."""
        if self.of is None:
            return self.value
        return scheduled / self.of * self.value


@dataclass(frozen=True, slots=True)
class _WrittenValue:
    """Value that a group gets after the step, unless other code writes one before."""

    group: Group
    name: str
    value: Option
    stamp: object

    def put_back(self) -> None:
        if _stamp(self.group.get(self.name)) == self.stamp:
            _write(self.group, self.name, self.value)


class LiveOptions:
    """Options that were set on one optimizer, and what else sets them.

    The thread that trains sets; any may look. No method keeps the optimizer.

    Attributes
    ----------
    held : dict
        Values that groups get back after the step, by the group's identity and the option.
    first : RemovableHandle or None
        Hook that restores the schedule before the optimizer's own hooks, while it steps.
    acts : bool
        Something was set that acts while the optimizer steps, or a rate is a tensor. Else a step
        is announced without a call of this.
    has_begun : bool
        The optimizer steps.
    n_updates : int
        Number of its steps that have begun.
    rates : list or None
        Learning rates after its last step, or in the one that runs; of a tensor what changes with
        each writing.
    moves : bool
        The loop wrote another learning rate between the last two steps.
    """

    def __init__(self) -> None:
        self._factors: dict[GroupOption, _Factor] = {}
        self.held: dict[tuple[int, str], _WrittenValue] = {}
        self.has_begun = False
        self.first: RemovableHandle | None = None
        self.rates: list[object] | None = None
        self.acts = self.moves = False
        self.n_updates = 0
        self._lock = threading.Lock()

    # ---------------------------------------------------------------- an optimizer's step

    def step_begins(self, optimizer: Optimizer) -> None:
        """Apply the factors."""
        if self.held:  # of a step that has raised
            self._put_back()
        if (before := self.rates) is not None:
            # At every step: as the comparison with `_rates`, without making its list.
            groups = optimizer.param_groups
            self.moves = len(groups) != len(before)
            for group, rate in zip(groups, before):  # noqa: B905
                now = group.get("lr")
                if now is not rate and (now if type(now) is float else _stamp(now)) != rate:
                    self.moves = True
            if self.moves and not self._factors:
                self._keep_moved([group.get("lr") for group in groups])
        self.has_begun, self.n_updates = True, self.n_updates + 1
        if self._factors:
            self.apply(optimizer)
            self._put_back_first(optimizer)

    def _keep_moved(self, rates: list[object]) -> None:
        """Keep rates as they are now, so that a step that leaves them ends without a call."""
        if {*map(type, rates)} == {float}:
            self.rates = rates

    def step_ends(self, optimizer: Optimizer) -> None:
        """Leave the schedule in the groups."""
        self.has_begun = False
        if not self.acts and [*map(rate_of, optimizer.param_groups)] == self.rates:
            return  # nearly always
        if self.held:
            self._put_back()
        if self.first is not None:
            self.first.remove()
            self.first = None
        self.rates = _rates(optimizer)
        self._note_acting()

    def _note_acting(self) -> None:
        is_plain = self.rates is None or all(map(_is_plain, self.rates))
        self.acts = bool(self._factors or self.held or self.first or not is_plain)

    def act_again(self, optimizer: Optimizer) -> None:
        """Apply the factors again after the optimizer's own hooks, for the readings of the step."""
        self.apply(optimizer)

    def is_stepping(self, optimizer: Optimizer) -> bool:
        """Return whether it has begun a step with its groups' values, and runs its closure now."""
        return self.has_begun and step_is_active(optimizer)

    def apply(self, optimizer: Optimizer) -> None:
        """Write to the groups what the optimizer uses; while they hold it nothing changes."""
        with self._lock:
            for place, factor in self._factors.items() if not self.held else ():
                group = _group(optimizer, place)
                if group is not None:
                    scheduled = _copied(group[place.name])
                    _write(group, place.name, factor.times(scheduled))
                    self._hold(group, place.name, scheduled)

    def _hold(self, group: Group, name: str, value: Option) -> None:
        """Keep ``value`` for the group after the step."""
        self.held[id(group), name] = _WrittenValue(group, name, value, _stamp(group[name]))
        self.acts = True

    def _put_back(self) -> None:
        if self.held:
            with self._lock:
                for held in self.held.values():
                    held.put_back()
                self.held = {}

    def _put_back_first(self, optimizer: Optimizer) -> None:
        """Restore before the optimizer's own hooks, one of which may be a scheduler's step."""
        hooks = optimizer._optimizer_step_post_hooks
        if hooks and self.first is None:
            self.first = optimizer.register_step_post_hook(lambda *_: self._put_back())
            for other in [key for key in hooks if key != self.first.id]:
                hooks[other] = hooks.pop(other)  # behind it

    # ---------------------------------------------------------------- reading and setting

    def value(self, optimizer: Optimizer, place: GroupOption) -> float:
        """Return what the optimizer will use from its next step on."""
        with self._lock:
            factor, between = self._factors.get(place), self._between_steps(optimizer, place)
            return float(between if factor is None else factor.times(between))

    def scheduled(self, optimizer: Optimizer, place: GroupOption) -> float | None:
        """Return the scheduled value of the option now; None where nothing schedules it."""
        moves = SCHEDULED_BY.get(place.name) in optimizer.param_groups[place.group]
        if place.name == "lr":
            moves |= self.moves
        if not moves and place not in self._factors:
            return None
        with self._lock:
            return float(self._between_steps(optimizer, place))

    def is_held(self, place: GroupOption) -> bool:
        """Return whether no schedule acts on it."""
        factor = self._factors.get(place)
        return factor is not None and factor.of is None

    def hold(self, optimizer: Optimizer, place: GroupOption, value: float) -> None:
        """Use ``value`` from the next step on, whatever is scheduled, until it is set again."""
        if not self.is_stepping(optimizer):
            self._put_back()  # of a step that has raised
        with self._lock:
            self._factors[place] = _Factor(value, None)
            self.acts = True

    def set(self, optimizer: Optimizer, place: GroupOption, value: float) -> None:
        """Use ``value`` from the next step on, as a factor where the option is scheduled.

        A schedule that is at 0 has no factor.
        """
        if not self.is_stepping(optimizer):
            self._put_back()  # of a step that has raised
        scheduled = self.scheduled(optimizer, place)
        with self._lock:
            if scheduled is None:
                self._put(optimizer, place, value)
            elif value == scheduled:
                self._factors.pop(place, None)
            else:
                self._factors[place] = _Factor(value, scheduled)
                self.acts = True

    def forget(self, place: GroupOption) -> None:
        """Leave it to its schedule, or to another optimizer that has the same group."""
        self._factors.pop(place, None)

    def _put(self, optimizer: Optimizer, place: GroupOption, value: float) -> None:
        """Write it; while the optimizer steps, which may have read it, after that."""
        group = optimizer.param_groups[place.group]
        if self.is_stepping(optimizer):
            self._hold(group, place.name, value)
        else:
            _write(group, place.name, value)
            self.rates = _rates(optimizer)  # it was not the loop that moved it

    def _between_steps(self, optimizer: Optimizer, place: GroupOption) -> Option:
        """Return what the group holds when the optimizer does not step."""
        group = optimizer.param_groups[place.group]
        held = self.held.get((id(group), place.name))
        value: Option = group[place.name] if held is None else held.value
        return value

    # ---------------------------------------------------------------- keeping

    def state(self) -> list[tuple[int, str, float, float | None]]:
        """Return the factors, for a checkpoint: no other state has them.

        Each has the group, the option, the value that was set, and the value that was scheduled;
        None if the value is held.
        """
        return [(*place, *factor) for place, factor in self._factors.items()]

    def load_state(self, rows: Iterable[tuple[int, str, float, float | None]]) -> None:
        """Replace the factors by these."""
        self._factors = {
            GroupOption(group, name): _Factor(value, of) for group, name, value, of in rows
        }
        self._note_acting()


options_by_id: dict[int, LiveOptions] = {}
"""Options by the identity of their optimizer; an entry is gone before another one gets it."""


def live_options(optimizer: Optimizer) -> LiveOptions:
    """Return the options of an optimizer, as long as it lives."""
    key = id(optimizer)
    found = options_by_id.get(key)
    if found is None:
        found = options_by_id.setdefault(key, LiveOptions())
        weakref.finalize(optimizer, options_by_id.pop, key, None)
    return found


def has_factors(optimizer: Optimizer) -> bool:
    """Return whether any option was set that acts while it steps."""
    found = options_by_id.get(id(optimizer))
    return found is not None and bool(found.state())


def _group(optimizer: Optimizer, place: GroupOption) -> Group | None:
    """Return the group of a place, which may be gone."""
    groups = optimizer.param_groups
    return groups[place.group] if place.group < len(groups) else None


def _rates(optimizer: Optimizer) -> list[object]:
    rates: list[object] = []
    for group in optimizer.param_groups:  # at every step: a number is its own stamp
        rate = group.get("lr")
        rates.append(rate if type(rate) is float else _stamp(rate))
    return rates


def _is_plain(rate: object) -> bool:
    """Return whether a learning rate is no tensor's stamp."""
    return type(rate) in (float, int)


def _stamp(value: Any) -> object:
    """Return what changes with each writing, without waiting for a device."""
    if not isinstance(value, Tensor):
        return value
    return id(value), 0 if value.is_inference() else value._version


def _copied(value: Option) -> Option:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _write(group: Group, name: str, value: Option) -> None:
    """Write into an existing tensor, where a captured or compiled step reads it."""
    now = group[name]
    if not isinstance(now, Tensor):
        group[name] = value
    elif value is not now:
        with uninterrupted, torch.no_grad():
            now.copy_(value) if isinstance(value, Tensor) else now.fill_(value)
