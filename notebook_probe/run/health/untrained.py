"""Trainable adapters that do not change."""

from __future__ import annotations

import re
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.around_optimizer import Updates
from notebook_probe.run.health.training_check import TrainingCheck

__all__ = ["Untrained", "adapters"]

NAMED = re.compile(r"(^|_)(lora|dora|vera|loha|hada|lokr|ia3|adapters?)(_|$)")
CLASSED = re.compile(r"Lo[Rr][Aa]|Do[Rr][Aa]|IA3|Adapter")

FROZEN = "no parameter of it requires a gradient"
NOT_HELD = "no optimizer holds any of its parameters"
ALL_ZERO = "all that could be trained there is zero, and so is its gradient; only one factor may be"
NOT_REACHED = "no gradient reaches it"
SEEN_ANYWHERE = frozenset({FROZEN, NOT_REACHED})
"""Reasons that are normal for one adapter while others train: another task, an expert."""


class Untrained(TrainingCheck):
    """Compare the adapters of a model with their initial values.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    updates : Updates
    rules : mapping of str to Rule
        The threshold ``after`` of `rule` is the number of steps between.
    """

    rule = "untrained_adapter"

    def __init__(self, model: nn.Module, updates: Updates, rules: Mapping[str, Rule]) -> None:
        super().__init__(rules)
        self._model, self._updates = weakref.ref(model), updates
        self._before: dict[str, list[Tensor]] | None = None
        self._first_step = 0
        self._is_done = False

    def look(self, step: int) -> bool:
        """Look at the model before a step; return whether to look again."""
        if self._is_done:
            return False
        model, rule = self._model(), self._rules.get(self.rule)
        if model is None or rule is None:
            return False
        if self._before is None:
            self._before = {
                # A copy of the adapters only: they are small compared with the model.
                path: [one.detach().clone() for one in _trainable(parameters)]
                for path, parameters in adapters(model).items()
            }
            self._first_step = step
        elif step - self._first_step >= rule.thresholds["after"]:
            self._is_done = True
            self._found = [*self._judged(model, self._before, rule, step)]
            self._before = {}
        return not self._is_done

    def _judged(
        self, model: nn.Module, before: Mapping[str, Sequence[Tensor]], rule: Rule, step: int
    ) -> Iterator[Onset]:
        held = _rates(self._updates.optimizers)
        if not held:  # no training, or updates by hand
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
        for why, paths in whys.items():
            if paths:
                sentence = rule.says.format(n_steps=step - self._first_step, why=why)
                yield Onset(step, tuple(paths), sentence, (self._first_step,) * 2)


def adapters(model: nn.Module) -> dict[str, tuple[nn.Parameter, ...]]:
    """Return the parameters of adapters, recognized by name, by the module that has them.

    A class around adapters that are found by their own names, such as a whole model, is none.

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
    """Return the module with the adapter that this parameter belongs to."""
    named = (way for way in _ways_to(name) if NAMED.search(way.rpartition(".")[2].lower()))
    return next((way.rpartition(".")[0] for way in named), None)


def _ways_to(name: str) -> Iterator[str]:
    """Return the paths from the root to a parameter, the shortest first."""
    parts = name.split(".")
    return (".".join(parts[: i + 1]) for i in range(len(parts)))


def _trainable(parameters: Sequence[nn.Parameter]) -> list[nn.Parameter]:
    """Return the trainable parameters; a frozen base may be as large as the device."""
    return [one for one in parameters if one.requires_grad]


def _are_alike(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(map(torch.equal, some, others))


def _rates(optimizers: Sequence[Optimizer]) -> dict[int, float]:
    """Return the learning rate of each parameter in an optimizer."""
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    # By identity, as tensors compare element by element.
    return {id(one): float(group.get("lr", 1.0)) for group in groups for one in group["params"]}


def _why(parameters: Sequence[nn.Parameter], held: Mapping[int, float]) -> str:
    """Return why these did not change; empty if that is intended."""
    trainable = _trainable(parameters)
    if not trainable:
        return FROZEN
    rates = [held[id(one)] for one in trainable if id(one) in held]
    if not rates:
        return NOT_HELD
    # A rate of 0 is a decision, such as a warmup.
    if not any(rates):
        return ""
    return NOT_REACHED if any(bool(one.any()) for one in trainable) else ALL_ZERO
