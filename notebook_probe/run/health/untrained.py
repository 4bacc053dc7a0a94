"""What is there to be trained and stays as it is: adapters, and layers that nothing reaches."""

from __future__ import annotations

import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Finding
from notebook_probe.probes.parameters.first_gradients import FirstGradients

__all__ = ["Untrained", "Updates", "adapters"]

NAMED = re.compile(r"(^|_)(lora|dora|vera|loha|hada|lokr|ia3|adapters?)(_|$)")
CLASSED = re.compile(r"Lo[Rr][Aa]|Do[Rr][Aa]|IA3|Adapter")

FROZEN = "none of its parameters requires a gradient"
NOT_HELD = "no optimizer holds any of its parameters"
ALL_ZERO = "all that could be trained there is zero, and so is its gradient; only one factor may be"
NOT_REACHED = "no gradient reaches it"
NOT_APPLIED = (
    "it has a gradient that no optimizer applies; give its parameters to the optimizer, which was "
    "made before they were, or freeze them"
)
CUT_OFF = (
    "it is called, and an optimizer holds it, but no update had a gradient for it: detach(), "
    "no_grad(), or an output that the loss does not use, is between"
)

SEEN_ANYWHERE = frozenset({FROZEN, NOT_REACHED})
"""As it should be of one adapter while others are trained: it is another task's, or an expert's."""


class Updates(Protocol):
    """What optimizers did so far."""

    first_gradients: FirstGradients

    @property
    def optimizers(self) -> list[Optimizer]: ...


class Untrained:
    """Compares the adapters of a model with what they were; on the training thread, once.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    updates : Updates
    last_call : callable
        The step of the last call of a module that was seen; -1 before any.
    rules : mapping of str to Rule
        The threshold ``after`` of ``untrained_adapter`` is the number of steps between.
    """

    def __init__(
        self,
        model: nn.Module,
        updates: Updates,
        last_call: Callable[[str], int],
        rules: Mapping[str, Rule],
    ) -> None:
        self._model, self._updates, self._rules = weakref.ref(model), updates, rules
        self._last_call = last_call
        self._before: dict[str, list[Tensor]] | None = None
        self._first_step = 0
        self._is_done = False
        self._found: list[Finding] = []

    def look(self, step: int) -> None:
        """Look at the model before a step."""
        if self._is_done:
            return
        model, rule = self._model(), self._rules.get("untrained_adapter")
        if model is None or rule is None:
            return
        if self._before is None:
            self._before = {
                path: [one.detach().clone() for one in _trainable(parameters)]
                for path, parameters in adapters(model).items()
            }
            self._first_step = step
        elif step - self._first_step >= rule.thresholds["after"]:
            self._is_done = True
            self._found = [*self._judged(model, self._before, rule, step)]
            self._before = {}
            self._updates.first_gradients.end()

    def take(self) -> list[Finding]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return found

    def _judged(
        self, model: nn.Module, before: Mapping[str, Sequence[Tensor]], rule: Rule, step: int
    ) -> Iterator[Finding]:
        held = _rates(self._updates.optimizers)
        if not held:  # nobody trains, or by hand
            return
        whys: defaultdict[str, list[str]] = defaultdict(list)
        found = {path: ones for path, ones in adapters(model).items() if path in before}
        still = {
            path: ones for path, ones in found.items() if _are_alike(_trainable(ones), before[path])
        }
        for path, ones in still.items():
            why = _why(ones, held)
            if why and not (why in SEEN_ANYWHERE and len(still) < len(found)):
                whys[why].append(path)
        told = {path for paths in whys.values() for path in paths}
        whys[NOT_APPLIED] = [path for path in _not_applied(model, held) if path not in told]
        told |= {*whys[NOT_APPLIED]}
        whys[CUT_OFF] = [path for path in self._cut_off(model, held) if path not in told]
        for why, paths in whys.items():
            if paths:
                sentence = rule.says.format(n_steps=step - self._first_step, why=why)
                yield Finding(step, tuple(paths), sentence, (self._first_step,) * 2)

    def _cut_off(self, model: nn.Module, held: Mapping[int, float]) -> list[str]:
        """Modules that are called, and of which no parameter ever had a gradient to apply.

        One that is not called may be as it should be; of one that is not measured nobody knows.
        """
        reached = self._updates.first_gradients.has_reached
        found = []
        for path, module in model.named_modules():
            own = [one for one in module.parameters(recurse=False) if one.requires_grad]
            if not own or not all(held.get(id(one)) for one in own):
                continue
            if self._last_call(path) >= 0 and not any(map(reached, own)):
                found.append(path)
        return found


def adapters(model: nn.Module) -> dict[str, tuple[nn.Parameter, ...]]:
    """Parameters of what is called an adapter, by the module that has it.

    A class around adapters that are found by their own names, as a whole model's is, is none.

    Examples
    --------
    >>> layer = nn.Linear(4, 4)
    >>> layer.lora_A, layer.lora_B = nn.Linear(4, 1), nn.Linear(1, 4)
    >>> [*adapters(nn.Sequential(layer))]
    ['0']
    """
    owners = {name: _named_owner(name) for name, _ in model.named_parameters()}
    around = {way for owner in owners.values() if owner for way in [*_ways_to(owner)][:-1]}
    classed = {
        path
        for path, module in model.named_modules()
        if path and path not in around and CLASSED.search(type(module).__name__)
    }
    found: defaultdict[str, list[nn.Parameter]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        owner = owners[name]
        if owner is None:
            owner = next((way for way in reversed([*_ways_to(name)]) if way in classed), None)
        if owner is not None:
            found[owner].append(parameter)
    return {path: tuple(parameters) for path, parameters in found.items()}


def _named_owner(name: str) -> str | None:
    """The module that has what is called an adapter, of a parameter of it."""
    named = (way for way in _ways_to(name) if NAMED.search(way.rpartition(".")[2].lower()))
    return next((way.rpartition(".")[0] for way in named), None)


def _ways_to(name: str) -> Iterator[str]:
    """The paths from the root to a parameter, the shortest first."""
    parts = name.split(".")
    return (".".join(parts[: i + 1]) for i in range(len(parts)))


def _trainable(parameters: Sequence[nn.Parameter]) -> list[nn.Parameter]:
    """A frozen base may be as large as the device; nobody changes it."""
    return [one for one in parameters if one.requires_grad]


def _are_alike(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(map(torch.equal, some, others))


def _rates(optimizers: Sequence[Optimizer]) -> dict[int, float]:
    """The learning rate of each parameter that an optimizer holds."""
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    return {id(one): float(group.get("lr", 1.0)) for group in groups for one in group["params"]}


def _why(parameters: Sequence[nn.Parameter], held: Mapping[int, float]) -> str:
    """Why these are what they were; empty where they are meant to be."""
    trainable = _trainable(parameters)
    if not trainable:
        return FROZEN
    rates = [held[id(one)] for one in trainable if id(one) in held]
    if not rates:
        return NOT_HELD
    if not any(rates):
        return ""
    return NOT_REACHED if any(bool(one.any()) for one in trainable) else ALL_ZERO


def _not_applied(model: nn.Module, held: Mapping[int, float]) -> list[str]:
    """Modules behind what an optimizer holds whose gradients it leaves where they are.

    What lies before all that is trained may be left out instead of being frozen.
    """
    found: dict[str, None] = {}
    is_behind = False
    for name, one in model.named_parameters():
        is_behind |= id(one) in held
        if is_behind and id(one) not in held and one.requires_grad and one.grad is not None:
            found[name.rpartition(".")[0]] = None
    return [*found]
