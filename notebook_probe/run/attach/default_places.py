"""Where a quantity is measured when nobody says where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import attention_places, default_places
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities import Quantity, as_quantity
from notebook_probe.quantities.reduce.features import CALL, WHOLE
from notebook_probe.run.attach.bypassed import is_never_fed
from notebook_probe.run.attach.request import (
    QuantityLike,
    ResolvedRequest,
    resolve,
)
from notebook_probe.schedules import ScheduleLike

__all__ = [
    "attention_modules",
    "default_places_of",
    "layers_of_vectors",
    "relu_modules",
    "resolve_at_default_places",
    "root",
]


def root(model_map: ModelMap) -> tuple[str, ...]:
    """The model itself, where quantities of the step and of all layers together live."""
    return ("",)


def attention_modules(model_map: ModelMap) -> Sequence[str]:
    """The attention modules; where none is called so, the model: all of it counts there."""
    return attention_places(model_map) or root(model_map)


def relu_modules(model_map: ModelMap) -> tuple[str, ...]:
    """The activations whose units can die."""
    kinds = nn.ReLU | nn.ReLU6
    return tuple(path for path, module in model_map.modules.items() if isinstance(module, kinds))


def layers_of_vectors(model_map: ModelMap) -> tuple[str, ...]:
    """Every layer but lookups, which have the directions of what is looked up.

    One that is asked for the same entry again and again, as that of the kinds of tokens, says
    nothing of a network whose outputs have become the same.
    """
    lookups = nn.Embedding | nn.EmbeddingBag
    layers = default_places(model_map)
    return tuple(
        path for path in layers if not isinstance(unwrapped(model_map.modules[path]), lookups)
    )


def default_places_of(model_map: ModelMap, quantity: Quantity) -> Sequence[str]:
    """Where ``quantity`` means most; it need not fit at each of these places.

    Of the model are quantities of the step, of a batch's targets, of many parameters at once and
    of the loss round them; of attention modules those of attention, of layers all others.
    """
    if quantity.is_of_model or quantity.is_of_batch:
        return root(model_map)
    if any(feature.each or feature.tensor in WHOLE for feature in quantity.features):
        return root(model_map)
    if any(CALL.get(need) == "inside" for need in quantity.needs):
        return attention_modules(model_map)
    return default_places(model_map)


def resolve_at_default_places(
    model_map: ModelMap, quantity: QuantityLike, when: ScheduleLike
) -> ResolvedRequest:
    """Resolve a request that names no place: the default ones at which the quantity fits.

    Raises
    ------
    UnknownNameError, ScheduleError, QuantityError, NotApplicableError
    """
    chosen = as_quantity(quantity)
    places = default_places_of(model_map, chosen)
    fed = [place for place in places if not is_never_fed(model_map, place, chosen)]
    return replace(resolve(model_map, fed, chosen, when), skipped=())
