"""Where a quantity is measured when nobody says where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from notebook_probe.model.selectors import attention_places, default_places
from notebook_probe.quantities import Quantity, as_quantity
from notebook_probe.quantities.reduce.features import CALL, WHOLE
from notebook_probe.run.attach.request import (
    QuantityLike,
    ResolvedRequest,
    modules_by_path,
    resolve,
)
from notebook_probe.schedules import ScheduleLike

__all__ = [
    "attention_modules",
    "default_places_of",
    "relu_modules",
    "resolve_at_default_places",
    "root",
]


def root(model: nn.Module) -> tuple[str, ...]:
    """The model itself, where quantities of the step and of all layers together live."""
    return ("",)


def attention_modules(model: nn.Module) -> Sequence[str]:
    """The attention modules; where none is called so, the model: all of it counts there."""
    return attention_places(model) or root(model)


def relu_modules(model: nn.Module) -> tuple[str, ...]:
    """The activations whose units can die."""
    return tuple(
        path
        for path, module in modules_by_path(model).items()
        if isinstance(module, nn.ReLU | nn.ReLU6)
    )


def default_places_of(model: nn.Module, quantity: Quantity) -> Sequence[str]:
    """Where ``quantity`` means most; it need not fit at each of these places.

    Of the model are quantities of the step, of a batch's targets, of many parameters at once and
    of the loss round them; of attention modules those of attention, of layers all others.
    """
    if quantity.is_of_model or quantity.is_of_batch:
        return root(model)
    if any(feature.each or feature.tensor in WHOLE for feature in quantity.features):
        return root(model)
    if any(CALL.get(need) == "inside" for need in quantity.needs):
        return attention_modules(model)
    return default_places(model)


def resolve_at_default_places(
    model: nn.Module, quantity: QuantityLike, when: ScheduleLike
) -> ResolvedRequest:
    """Resolve a request that names no place: the default ones at which the quantity fits.

    Raises
    ------
    UnknownNameError, ScheduleError, QuantityError, NotApplicableError
    """
    chosen = as_quantity(quantity)
    return replace(resolve(model, default_places_of(model, chosen), chosen, when), skipped=())
