"""Resolving a request to attach: places x quantities x schedules, checked before anything is.

Accepted are a selection with a quantity and a schedule, and Taiyi's dict
``{selection: ["Quantity", ["Quantity", "linear(5,0)"]]}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import torch
from torch import nn

from notebook_probe.errors import NotApplicableError, QuantityError, UnknownNameError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where, select, standard_place
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.step.probe import PhaseName, Probe
from notebook_probe.quantities import Quantity, as_quantity, quantities
from notebook_probe.quantities.reduce.features import ANYTIME, CALL, is_of_all, moment_of
from notebook_probe.quantities.reduce.reductions import parts
from notebook_probe.schedules import ScheduleLike, schedule

__all__ = [
    "Misfit",
    "ResolvedRequest",
    "Resolver",
    "misfit",
    "misfit_at",
    "read_items",
    "resolve",
]

QuantityLike: TypeAlias = "Quantity | Callable[..., Any] | str"


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """Resolved request: the probes to attach, and the places where it does not fit."""

    probes: tuple[Probe, ...]
    skipped: tuple[str, ...]
    """Sentences: which place was left out, and why."""


Resolver: TypeAlias = Callable[[ModelMap], ResolvedRequest]
"""Function that resolves a request in the present model."""


def resolve(
    model_map: ModelMap,
    where: Where | Mapping[Any, Any],
    quantity: QuantityLike | Sequence[QuantityLike] | None,
    when: ScheduleLike,
    phase: PhaseName = "training",
    per_call: bool = False,
) -> ResolvedRequest:
    """Resolve the arguments of attach.

    Raises
    ------
    UnknownNameError, ScheduleError, QuantityError
        Before anything is attached.
    NotApplicableError
        A quantity that fits none of the places, or not the one that was named.
    """
    if isinstance(where, Mapping):
        parts = [
            resolve(model_map, place, one, wanted or when, phase, per_call)
            for place, items in where.items()
            for one, wanted in read_items(items)
        ]
        return _joined(parts)
    if quantity is None:
        raise QuantityError(f"attach({where!r}): which quantity?")
    if isinstance(quantity, list | tuple):
        parts = [resolve(model_map, where, one, when, phase, per_call) for one in quantity]
        return _joined(parts)
    chosen, due = _chosen(model_map, where, quantity), schedule(when)
    _check_kind(chosen, phase, per_call)
    places = select(model_map, where)
    if not places:
        raise UnknownNameError(f"attach({where!r}, ...): an empty selection names no module")
    tried = [
        misfit(model_map, place, chosen)
        or Probe(place, chosen, due, phase, per_call, may_stretch=when is None)
        for place in places
    ]
    probes = tuple(probe for probe in tried if isinstance(probe, Probe))
    skipped = tuple(reason for reason in tried if isinstance(reason, str))
    # One place that fits is enough: a selection such as "*" includes many that cannot.
    if not probes:
        raise NotApplicableError(skipped[0])
    return ResolvedRequest(probes, skipped)


def _chosen(model_map: ModelMap, where: Where, quantity: Any) -> Quantity:
    """Read the quantity; report a quantity in the place of the module."""
    try:
        return as_quantity(quantity)
    except UnknownNameError:
        if isinstance(where, str) and where in quantities and _is_selection(model_map, quantity):
            raise UnknownNameError(
                f"attach({where!r}, {quantity!r}): {where!r} is a quantity and {quantity!r} a "
                f"module; the module comes first: attach({quantity!r}, {where!r})"
            ) from None
        raise


def _is_selection(model_map: ModelMap, given: Any) -> bool:
    """Return whether a string selects modules: a path, a glob or a class name."""
    try:
        return isinstance(given, str) and bool(select(model_map, given))
    except UnknownNameError:
        return False


def _check_kind(quantity: Quantity, phase: str, per_call: bool) -> None:
    """Refuse a phase or a way of pooling that the quantity's tensors do not have."""
    if phase not in get_args(PhaseName):
        raise NotApplicableError(f"phase={phase!r}; allowed: 'training', 'eval'")
    needs = ", ".join(quantity.needs)
    if phase == "eval" and not all(map(_is_of_evaluation, quantity.needs)):
        raise NotApplicableError(
            f"{quantity.name} needs {needs}; an evaluation has only input, output, "
            f"attention, weight, module and what run.batch() hands over"
        )
    if phase == "eval" and set(quantity.needs) <= ANYTIME:
        raise NotApplicableError(f"{quantity.name} needs {needs}; that is no matter of evaluation")
    if per_call and quantity.is_window:
        raise NotApplicableError(
            f"{quantity.name} takes several calls together; per_call keeps them apart"
        )
    if per_call and not set(quantity.needs) & CALL.keys():
        raise NotApplicableError(f"{quantity.name} needs {needs}; per_call is for a call's tensors")
    if per_call and quantity.pools and not set(quantity.needs) <= CALL.keys():
        raise NotApplicableError(f"{quantity.name} needs {needs}, not of calls alone")


def _is_of_evaluation(need: str) -> bool:
    return need in ANYTIME or moment_of(need) in ("inside", "forward", "batch")


def misfit(model_map: ModelMap, place: str, quantity: Quantity) -> str:
    """Return the reason why ``quantity`` cannot be measured at ``place``; empty if it can.

    A place that is no module's is a parameter.
    """
    found = misfit_at(model_map, place, quantity)
    return found.sentence(quantity, _described(place, model_map)) if found is not None else ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Reason why a quantity does not fit a place."""

    need: str
    """Need of the quantity, as text; "" if only the place is the problem."""
    fault: str
    """Problem with the place, as text after its name; "" if any but the root is wrong."""

    def sentence(self, quantity: Quantity, place: str) -> str:
        """Return the full sentence for one place."""
        if not self.fault:
            return f"{quantity.name} {self.need}; attach it at '', the model"
        name = f"{quantity.name} {self.need};" if self.need else f"{quantity.name}:"
        return f"{name} {place} {self.fault}"


def misfit_at(model_map: ModelMap, place: str, quantity: Quantity) -> Misfit | None:
    """Return the misfit of ``quantity`` at ``place``; None if it can be measured there."""
    module = unwrapped(model_map.by_every_path.get(place))
    if place and quantity.is_of_model:
        return Misfit(f"needs {', '.join(quantity.needs)}, of the step as a whole", "")
    for feature in quantity.features:
        need = feature.tensor
        # Values of the batch or the step do not depend on the module.
        if moment_of(need) in ("batch", "closing"):
            continue
        is_seen = need in CALL or need == "probe_output"
        if is_seen or need == "module":
            if module is None:
                return Misfit(f"needs {need!r}", "is a parameter and has none")
            closed = _closed(module) if is_seen else ""
            if closed:
                return Misfit(f"needs {need!r}", closed)
        elif module is not None and not _has_parameter(model_map, place, is_of_all(feature)):
            return Misfit(f"needs {need!r}", "has none")
    fault = _missing_part(quantity, module) if module is not None else ""
    return Misfit("", fault) if fault else None


def _missing_part(quantity: Quantity, module: nn.Module) -> str:
    """Return what the quantity's summaries lack at a module; empty if nothing."""
    found = (parts[feature.part].misfit(module) for feature in quantity.features if feature.part)
    return next(filter(None, found), "")


def _closed(module: nn.Module) -> str:
    """Return the reason why a module's calls are not visible; empty if they are."""
    # torch refuses hooks on scripted modules.
    if isinstance(module, torch.jit.ScriptModule):
        return "is scripted and takes no hooks"
    # Containers such as ModuleList inherit nn.Module's forward, which only raises.
    return "is never called" if type(module).forward is nn.Module.forward else ""


def _has_parameter(model_map: ModelMap, place: str, below: bool) -> bool:
    return model_map.has_parameters(place) if below else bool(model_map.slots(place))


def _described(place: str, model_map: ModelMap) -> str:
    module = unwrapped(model_map.by_every_path.get(place))
    if module is None:
        return repr(place)
    return f"{standard_place(place)!r} ({type(module).__name__})"


def read_items(items: Any) -> list[tuple[QuantityLike, ScheduleLike]]:
    """Taiyi's spelling: "Q" | ["Q"] | ["Q", schedule] | quantity, one or a list of these."""
    if not isinstance(items, list | tuple):
        return [(items, None)]
    read: list[tuple[QuantityLike, ScheduleLike]] = []
    for item in items:
        if not isinstance(item, list | tuple):
            read.append((item, None))
        elif 1 <= len(item) <= 2:
            read.append((item[0], item[1] if len(item) == 2 else None))
        else:
            raise QuantityError(f"{item!r}: allowed are 'Q', ['Q'] and ['Q', schedule]")
    return read


def _joined(parts: list[ResolvedRequest]) -> ResolvedRequest:
    """Merge requests; a probe of two of them is attached once."""
    probes = {probe.key(): probe for part in parts for probe in part.probes}
    skipped = (sentence for part in parts for sentence in part.skipped)
    return ResolvedRequest(tuple(probes.values()), tuple(skipped))
