"""Running a model once more, between two steps, without leaving a trace in it or in training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import _disable_current_modes

from notebook_probe.probes.replay.attribute_copies import give_copies
from notebook_probe.probes.replay.random_state import RandomState
from notebook_probe.probes.step.compiled import has_compiled
from notebook_probe.probes.step.phase import own_call

__all__ = ["untouched"]

OF_HOOKS = tuple(name for name, own in vars(nn.Module()).items() if "hook" in name and own == {})


@contextmanager
def untouched(modules: Sequence[nn.Module], devices: Iterable[torch.device]) -> Iterator[None]:
    """Evaluate ``modules`` inside; afterwards everything is restored, also after an error.

    Inside, every module is in evaluation mode and every operation can be derived twice: autocast,
    inference mode, compiled code and the fused kernels of attention and recurrent layers are off.
    Attributes that a call assigns or writes into, modes and random generators are put back, and
    hooks that it adds are removed. Writes of a call into parameters and buffers are not undone:
    pass copies of them.
    """
    devices = [device for device in devices if device.type != "meta"]
    with ExitStack() as stack:
        stack.callback(RandomState.now(devices).set)
        stack.callback(_put_back, [(own, {**own}) for own in _attributes(modules)])
        stack.callback(_take_off, [(own, {*own}) for own in _hooks(modules)])
        stack.enter_context(own_call())
        stack.enter_context(_disable_current_modes())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in {"cpu", *(device.type for device in devices)}:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if any(isinstance(part, nn.RNNBase) for module in modules for part in module.modules()):
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        if has_compiled():
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        give_copies(modules)
        for module in modules:
            for part in module.modules():
                part.training = False
        yield


def _attributes(modules: Sequence[nn.Module]) -> Iterator[dict[str, Any]]:
    """Yield the dicts in which modules keep their attributes."""
    for module in modules:
        for part in module.modules():
            yield part.__dict__
            for kind in ("_parameters", "_buffers"):
                if isinstance(own := part.__dict__.get(kind), dict):
                    yield own


def _hooks(modules: Sequence[nn.Module]) -> Iterator[dict[int, Any]]:
    """Yield the dicts of modules' hooks, and what torch keeps under the hooks' numbers."""
    for module in modules:
        for part in module.modules():
            yield from (own for name in OF_HOOKS if (own := part.__dict__.get(name)) is not None)


def _take_off(kept: list[tuple[dict[int, Any], set[int]]]) -> None:
    """Models of Hugging Face put hooks on themselves in their first call, and note that they have.

    As the note goes, they would put on others in the next.
    """
    for own, before in kept:
        for number in own.keys() - before:
            del own[number]


def _put_back(kept: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for own, before in kept:
        if own.keys() != before.keys() or any(own[name] is not before[name] for name in before):
            own.clear()
            own.update(before)
