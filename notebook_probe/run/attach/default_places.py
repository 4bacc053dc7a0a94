"""Default places of quantities."""

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
    "layers_of_several_inputs",
    "layers_of_vectors",
    "layers_that_keep_directions",
    "model_on_cuda",
    "relu_modules",
    "resolve_at_default_places",
    "root",
]


def root(model_map: ModelMap) -> tuple[str, ...]:
    """The model itself, for quantities of the step and of all layers together."""
    return ("",)


def model_on_cuda(model_map: ModelMap) -> tuple[str, ...]:
    """The model itself, if parameters of it are on a CUDA device."""
    parameters = (one for module in model_map.modules.values() for one in module.parameters(False))
    return root(model_map) if any(one.is_cuda for one in parameters) else ()


def attention_modules(model_map: ModelMap) -> Sequence[str]:
    """The attention modules; if none has such a name, the model, all of which counts there."""
    return attention_places(model_map) or root(model_map)


def relu_modules(model_map: ModelMap) -> tuple[str, ...]:
    """The activations whose units can die."""
    kinds = nn.ReLU | nn.ReLU6
    return tuple(path for path, module in model_map.modules.items() if isinstance(module, kinds))


def layers_of_vectors(model_map: ModelMap) -> tuple[str, ...]:
    """Every layer but lookups, whose directions are those of their entries.

    A lookup that always gets the same entry, such as the one for token types, says nothing about a
    network whose outputs have become equal.
    """
    lookups = nn.Embedding | nn.EmbeddingBag
    layers = default_places(model_map)
    return tuple(
        path for path in layers if not isinstance(unwrapped(model_map.modules[path]), lookups)
    )


def layers_of_several_inputs(model_map: ModelMap) -> tuple[str, ...]:
    """Return the layers of vectors, except for linear ones of a single input.

    A share of one channel is all or nothing, and where all is zero the layer is a bias: programs
    write a constant that is learned as ``nn.Linear(1, n)`` of zeros.
    """
    return tuple(
        path
        for path in layers_of_vectors(model_map)
        if not _has_one_input(unwrapped(model_map.modules[path]))
    )


def layers_that_keep_directions(model_map: ModelMap) -> tuple[str, ...]:
    """Return the layers of vectors, except for those whose input is at most half as wide.

    A second factor of an adapter, or a layer behind a bottleneck, has no more directions than its
    input: what is lost there is lost before, or on purpose.
    """
    return tuple(
        path
        for path in layers_of_vectors(model_map)
        if not _widens(unwrapped(model_map.modules[path]))
    )


def _has_one_input(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and module.in_features == 1


def _widens(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and 2 * module.in_features <= module.out_features


def default_places_of(model_map: ModelMap, quantity: Quantity) -> Sequence[str]:
    """Return the most meaningful places of ``quantity``; it need not fit at each of them.

    Quantities of the step, of a batch's targets, of many parameters at once and of the loss around
    them are measured at the model; those of attention at attention modules, all others at layers.
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
