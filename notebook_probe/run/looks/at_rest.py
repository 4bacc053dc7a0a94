"""Tensors of a module, computed once more from the last inputs while nothing trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from notebook_probe.graph.undisturbed import undisturbed
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.loss.kept_calls import KeptCall
from notebook_probe.probes.step.containers import activations, tensors_of

__all__ = ["tensors_at_rest"]


def tensors_at_rest(model: nn.Module, module: nn.Module, call: KeptCall) -> Mapping[str, Tensor]:
    """Call the model again, in its present modes; return what ``module`` gets, gives and weighs.

    Nothing stays of the call. Empty if it does not call the module.

    Raises
    ------
    NotApplicableError
        The model cannot be called by this process alone.
    Exception
        Any error of the model.
    """
    model, found = unwrap(model), dict[str, Tensor]()

    def note(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        for name, value in (("input", [args, kwargs]), ("output", output)):
            if tensors := activations(tensors_of(value)):
                found[name] = tensors[0].detach().clone()

    with undisturbed(model, call.tensors):  # takes the hook off
        module.register_forward_hook(note, with_kwargs=True)
        call.make_again(model)
    weight = getattr(module, "weight", None)
    if found and isinstance(weight, Tensor):
        found["weight"] = weight.detach()
    return found
