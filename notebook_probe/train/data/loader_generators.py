"""Own generators of a DataLoader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader

__all__ = ["begin_with_new_workers", "loader_generators", "set_loader_generators"]


def loader_generators(source: Any) -> list[torch.Tensor]:
    """States of the generators of a loader and its samplers, in a fixed order."""
    return [generator.get_state() for generator in _of(source)]


def set_loader_generators(source: Any, states: Sequence[torch.Tensor]) -> None:
    """Put back what `loader_generators` gave."""
    for generator, state in zip(_of(source), states, strict=False):
        generator.set_state(state)


def begin_with_new_workers(source: Any) -> None:
    """Start the next pass of a loader with new workers, even if its workers persist.

    Persistent workers keep their random generators from pass to pass, which no checkpoint can
    store. New ones are seeded by the loader as the pass begins, and that seed is kept.
    """
    has_own_state = callable(getattr(source, "state_dict", None))
    if isinstance(source, DataLoader) and source.persistent_workers and not has_own_state:
        # torch has no public way to end persistent workers; without this it makes new ones.
        source._iterator = None


def _of(source: Any) -> list[torch.Generator]:
    sampler, batch_sampler = (getattr(source, name, None) for name in ("sampler", "batch_sampler"))
    owners = (source, sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    own = [generator for generator in found if isinstance(generator, torch.Generator)]
    # A loader and its sampler may share one generator.
    return list({id(generator): generator for generator in own}.values())
