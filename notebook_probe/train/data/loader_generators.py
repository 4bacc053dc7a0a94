"""The generators of its own that a DataLoader draws from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["loader_generators", "set_loader_generators"]


def loader_generators(source: Any) -> list[torch.Tensor]:
    """States of the generators of a loader and its samplers, in a fixed order."""
    return [generator.get_state() for generator in _of(source)]


def set_loader_generators(source: Any, states: Sequence[torch.Tensor]) -> None:
    """Put back what `loader_generators` gave."""
    for generator, state in zip(_of(source), states, strict=False):
        generator.set_state(state)


def _of(source: Any) -> list[torch.Generator]:
    sampler, batch_sampler = (getattr(source, name, None) for name in ("sampler", "batch_sampler"))
    owners = (source, sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    own = [generator for generator in found if isinstance(generator, torch.Generator)]
    return list({id(generator): generator for generator in own}.values())
