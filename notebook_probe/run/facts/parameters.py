"""Facts about parameters: held by an optimizer, frozen, moving, changed by a step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import Optimizer

from notebook_probe.alerts.rule import Severity
from notebook_probe.model.changes import Tree
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.rates import known_rate
from notebook_probe.run.facts.thawed import ThawedParameters
from notebook_probe.run.facts.unwritten import N_UNWRITTEN, UnwrittenUpdates, is_same, sample

__all__ = ["WhoTrains", "learns_its_input"]

RARELY, SELDOM, LATE = 4, 32, 16
"""Updates between two looks: at least, at most, and else those so far divided by ``LATE``."""
CENSUS = 32
"""Parameters of an optimizer that are looked at per update."""
WRITTEN_EVERY = 4
"""Number of looks of which one also asks whether the update writes to the parameters."""
COMPARED_AT = (5, 50, 500, 5000)
"""Updates before and after which weights are compared."""
NEVER = 2**62
"""An update that never comes."""
ROUNDED = (
    "in {} the update is rounded away; keep the weights in float32 and compute under torch.autocast"
)
UNMOVED = (
    "it is smaller than the last digit of a weight, or something masks it, or puts the old value "
    "back"
)
UNWRITTEN = (
    "step() has written to none of them in {} updates: it returns before it applies the gradient, "
    "or applies it to copies of the parameters"
)
PROMPT = "the first layer alone, as where a prompt or a perturbation is learned"
NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


class WhoTrains:
    """Facts about the parameters of one model.

    Parameters
    ----------
    context : FactContext

    Attributes
    ----------
    is_settled : bool
        The present tree has been looked at.
    before : list
        Weights before an update that `update_ends` compares; empty for most updates.
    versions : list
        Parameters, with what torch has counted of writes to each, before the same updates and some
        more.
    """

    def __init__(self, context: FactContext) -> None:
        self._model, self._findings = context.model, context.findings
        self._tree = Tree(())
        self._map: ModelMap | None = None
        self._changed_at = 0
        self._old_gradients: dict[int, _Written] = {}
        self.is_settled = self._is_remarked = False
        self._next_census: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self.before: list[tuple[int, int, Tensor]] = []
        self._unchanged: set[int] = set()
        self.versions: list[tuple[Tensor, int]] = []
        self._unwritten = UnwrittenUpdates()
        self._trained: set[int] = set()
        self.thawed = ThawedParameters(context)
        self._n_censuses = -1

    def look(self, step: int, optimizers: Sequence[Optimizer], model_map: ModelMap) -> None:
        """Look at the tree between two steps: who holds what, some steps after a change."""
        model = self._model()
        if model is None:
            return
        if self._map is not model_map:  # walked already
            self._see(model_map.modules.values(), step)
        elif self._tree.has_changed():  # nothing is measured, so the map was not renewed
            self._see(model.modules(), step)
            self._is_remarked = True  # a further walk would be one too many
        self._map = model_map
        if self.is_settled and step >= self.thawed.due:
            self.thawed.look(step, _identities(optimizers))
        if self.is_settled or not optimizers:
            return
        if not self._is_remarked:
            self._is_remarked = True
            self._say_frozen(model_map.modules.values(), step, "remark")
        if step - self._changed_at < self._findings.threshold("not_in_optimizer", "after"):
            return
        self.is_settled = True
        self._say_unheld(model, step, optimizers)
        self._say_frozen(model.modules(), step, "warning")
        self.thawed.learn(model, step, _identities(optimizers))

    def _see(self, modules: Iterable[nn.Module], step: int) -> None:
        here = [*modules]
        self._tree, self._changed_at = Tree(here), step
        self.is_settled = self._is_remarked = False
        # A teacher that was trained before has gradients that no backward pass reaches any more.
        parameters = (one for module in here for one in module._parameters.values())
        self._old_gradients = {id(one): _written(one.grad) for one in parameters if one is not None}

    def _say_unheld(self, model: nn.Module, step: int, optimizers: Sequence[Optimizer]) -> None:
        held = _identities(optimizers)
        old, self._old_gradients = self._old_gradients, {}
        names = [name for name, one in _behind_held(model, held) if not _is_left(one, old)]
        if names:
            modules = tuple(dict.fromkeys(name.rpartition(".")[0] for name in names))
            own = {id(value) for value in model.parameters()}
            n_strangers = len(held - own)
            also = f" but {n_strangers} that the model does not have" if n_strangers else ""
            is_prompt = not n_strangers and learns_its_input(model, optimizers)
            self._findings.say(
                "not_in_optimizer",
                step,
                modules,
                since=self._changed_at,
                severity="remark" if is_prompt else None,
                words={"n": len(names), "held": PROMPT if is_prompt else f"others{also}"},
            )

    def _say_frozen(self, modules: Iterable[nn.Module], step: int, severity: Severity) -> None:
        """Report a network of which only normalization layers are left to train."""
        kinds: dict[bool, int] = {True: 0, False: 0}
        frozen = 0
        for module in modules:
            own = [one for one in module._parameters.values() if one is not None]
            kinds[isinstance(module, NORMS)] += any(one.requires_grad for one in own)
            frozen += bool(own) and not any(one.requires_grad for one in own)
        if kinds[True] and not kinds[False] and frozen:
            words = {"n": frozen}
            self._findings.say("only_norms_train", step, severity=severity, words=words)

    def gradients_ready(self, optimizer: Optimizer, n: int, step: int) -> int:
        """Look at what the ``n``-th update is about to apply; return the next one to look at."""
        is_in_doubt = self._unwritten.is_in_doubt(optimizer)
        is_census = n >= self._next_census.get(optimizer, 0)
        if is_census or is_in_doubt:
            values = _values(optimizer)
            usual = min(max(RARELY, n // LATE), SELDOM)
            self._next_census[optimizer] = n + max(usual, len(values) // CENSUS)
            self._n_censuses += is_census
            if frozen := [one for one in values if not one.requires_grad]:
                self._look_at_frozen(frozen, step)
            if is_in_doubt or self._n_censuses % WRITTEN_EVERY == 0:
                held = _held(values)
                self._trained.update(map(id, held))
                self.versions = [(one, one._version) for one in held[:CENSUS]]
        if n in COMPARED_AT:
            self.before = [
                (id(one), one._version, torch.clone(sample(one))) for one in _applied(optimizer)
            ]
        if is_in_doubt:
            return n + 1
        return min(self._next_census[optimizer], *[one for one in COMPARED_AT if one > n], NEVER)

    def _look_at_frozen(self, frozen: Sequence[Tensor], step: int) -> None:
        """Look for frozen parameters with a gradient, and for those that were trained before."""
        moving = [one for one in frozen if one.grad is not None]
        late = [one for one in frozen if id(one) in self._trained]
        self._say_of("frozen_but_moving", moving, step)
        self._say_of("frozen_late", late, step)
        self._trained.difference_update(map(id, late))

    def update_ends(self, optimizer: Optimizer, step: int) -> None:
        """Compare the weights with those before the update."""
        before, self.before = self.before, []
        versions, self.versions = self.versions, []
        if versions:
            self._count_unwritten(optimizer, versions, step)
        skipped = getattr(optimizer, "found_inf", None) if before else None  # a gradient scaler's
        if before and not (isinstance(skipped, Tensor) and bool(skipped)):
            self._compare(optimizer, before, step)

    def _compare(
        self, optimizer: Optimizer, before: Sequence[tuple[int, int, Tensor]], step: int
    ) -> None:
        """Compare values with those before an update that has written to them."""
        values = {id(one): one for one in _values(optimizer)}
        same = {
            key
            for key, version, old in before
            if key in values and values[key]._version != version and is_same(values[key], old)
        }
        again, self._unchanged = same & self._unchanged, same
        if not again:
            return
        names = {id(one): (name, one) for name, one in self._named()}
        found = [names[key] for key in again if key in names]
        if found:
            modules = tuple(dict.fromkeys(name.rpartition(".")[0] for name, _ in found))
            half = {one.dtype for _, one in found} & {torch.float16, torch.bfloat16}
            kind = str(min(half, key=str)).removeprefix("torch.") if half else ""
            why = ROUNDED.format(kind) if half else UNMOVED
            severity: Severity = "warning" if half else "remark"  # a small rate may be meant
            words = {"why": why}
            self._findings.say("step_without_effect", step, modules, severity=severity, words=words)

    def wrote_nothing(self, optimizer: Optimizer, n: int) -> bool:
        """Note that the ``n``-th update has not written; return whether to look at the next."""
        return self._unwritten.stops(optimizer, n, _held(_values(optimizer))[:CENSUS])

    def _count_unwritten(
        self, optimizer: Optimizer, versions: Sequence[tuple[Tensor, int]], step: int
    ) -> None:
        """Count updates that have written to no parameter, as torch counts writes to each."""
        n = self._unwritten.count(optimizer, versions)
        if n:
            severity: Severity = "warning" if n == N_UNWRITTEN else "remark"
            found = [one for one, _ in versions if one.is_cpu]
            words = {"why": UNWRITTEN.format(n)}
            self._say_of("step_without_effect", found, step, words, severity)

    def _say_of(
        self,
        rule: str,
        some: Sequence[Tensor],
        step: int,
        words: Mapping[str, object] = MappingProxyType({}),
        severity: Severity | None = None,
    ) -> None:
        if not some:
            return
        names = {id(one): name for name, one in self._named()}
        found = [names[id(one)] for one in some if id(one) in names]
        if found:
            modules = tuple(dict.fromkeys(name.rpartition(".")[0] for name in found))
            words = {"n": len(found), **words}
            self._findings.say(rule, step, modules, severity=severity, words=words)

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        model = self._model()
        return iter(()) if model is None else model.named_parameters()


def learns_its_input(model: nn.Module, optimizers: Sequence[Optimizer]) -> bool:
    """Return whether the first layer alone is trained, and two or more behind it are not.

    Until an optimizer is known, all that requires a gradient is taken to be trained.
    """
    every = [(name.rpartition(".")[0], one) for name, one in model.named_parameters()]
    held = _identities(optimizers)
    trained = {
        owner for owner, one in every if one.requires_grad and (id(one) in held or not optimizers)
    }
    return trained == {every[0][0]} and len({owner for owner, _ in every}) > 2


def _values(optimizer: Optimizer) -> list[Tensor]:
    return [value for group in optimizer.param_groups for value in group["params"]]


def _identities(optimizers: Iterable[Optimizer]) -> set[int]:
    """Return the identities of all parameters that optimizers have."""
    return {id(value) for one in optimizers for value in _values(one)}


def _held(values: Sequence[Tensor]) -> list[Tensor]:
    """Return those that an update should change: with a gradient."""
    return [one for one in values if one.requires_grad and one.grad is not None]


_Written: TypeAlias = tuple[StorageWeakRef, int] | None


def _written(gradient: Tensor | None) -> _Written:
    """Return the memory of a gradient and the number of writes to it; None if it has none.

    The memory is referred to weakly, and the tensor not at all: torch swaps none that is.
    """
    if gradient is None:
        return None
    here = local(gradient)
    with suppress(NotImplementedError, RuntimeError):  # a sparse one
        return StorageWeakRef(here.untyped_storage()), here._version
    return None


def _is_left(value: Tensor, old: Mapping[int, _Written]) -> bool:
    """Return whether the gradient is one of these, and nothing has been written to it since."""
    before, now = old.get(id(value)), _written(value.grad)
    return before is not None and before == now


def _behind_held(model: nn.Module, held: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Yield parameters with a gradient that no optimizer holds, after one that is held.

    Layers before all trained ones may be excluded instead of being frozen.
    """
    is_behind = False
    for name, one in model.named_parameters():
        is_behind |= id(one) in held
        if is_behind and id(one) not in held and one.requires_grad and one.grad is not None:
            yield name, one


def _applied(optimizer: Optimizer) -> Iterator[Tensor]:
    """Yield parameters that the update should change: with a gradient, at a rate above 0.

    Only those in the memory of the host: a comparison would wait for an accelerator.
    """
    for group in optimizer.param_groups:
        if "lr" in group and known_rate(group) <= 0:
            continue
        for value in group["params"]:
            gradient = value.grad
            is_plain = value.is_cpu and type(value.data) is Tensor and gradient is not None
            if is_plain and not gradient.is_sparse and bool(sample(gradient).any()):
                yield value
