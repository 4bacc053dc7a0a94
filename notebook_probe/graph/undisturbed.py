"""One call of a model in its present modes, without a trace in the model or its hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from notebook_probe.errors import NotApplicableError
from notebook_probe.probes.replay.isolation import untouched
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["undisturbed"]

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@contextmanager
def undisturbed(model: nn.Module, inputs: Sequence[Tensor]) -> Iterator[None]:
    """Call ``model`` inside the context, without gradients; restore everything afterwards.

    Only hooks of torch itself stay, which compute weights; observers, as our own probes, are not
    called. Writes into parameters and buffers are not undone: pass copies of them.

    Raises
    ------
    NotApplicableError
        It cannot be called now, or not by this process alone.
    """
    own = [*model.parameters(), *model.buffers()]
    _check(own)
    modes = [(part, part.training) for part in model.modules()]
    compiled = is_compiled(model)
    with (
        uninterrupted,
        untouched([model], {one.device for one in [*own, *inputs]}),
        torch.no_grad(),
    ):
        for part, is_training in modes:
            # `untouched` sets evaluation mode; the graph is of the present modes.
            part.training = is_training
            _take_hooks_off(part)
            # Compiled code runs no hooks and no torch functions that could be seen.
            if part._compiled_call_impl is not None:
                part._compiled_call_impl = None
        with torch.compiler.set_stance("force_eager") if compiled else nullcontext():
            yield


def _check(own: Sequence[Tensor]) -> None:
    if any(map(is_lazy, own)):
        raise NotApplicableError("some parameters are lazy: the first call gives them a shape")
    if any(local(one) is not one for one in own):
        raise NotApplicableError("the parameters are split over processes")


def _take_hooks_off(part: nn.Module) -> None:
    """Remove all hooks but torch's own; `untouched` restores them."""
    attributes = part.__dict__
    for name in HOOKS:
        if hooks := attributes.get(name):
            attributes[name] = OrderedDict(
                (key, hook) for key, hook in hooks.items() if _is_of_torch(hook)
            )


def _is_of_torch(hook: Any) -> bool:
    home = getattr(hook, "__module__", None) or type(hook).__module__
    return home.partition(".")[0] == "torch"
