"""Publication of a rank's state, in an attribute of its record."""

from __future__ import annotations

import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step_sequence import LOOK_EVERY
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.ranks.replica import Replica, ReplicaState
from notebook_probe.run.facts.ranks.shards import shards_of
from notebook_probe.run.facts.ranks.waiting import waits_in
from notebook_probe.run.facts.rates import known_rate

__all__ = ["OwnReplica", "is_distributed"]

N_FIRST, N_LAST = 20, 8
"""First steps, all of which are compared, and later states that are published."""
MOST_WEIGHTS = 2000
"""Weights that are compared."""
MOST_FRAMES = 30
"""Largest number of calls between the wrapper and a hook of the model."""
WRAPPER = DistributedDataParallel.forward.__code__
SPLIT = "Parallel"
"""Part of the class names of layers of which each rank has another part."""


class OwnReplica:
    """State of the present rank.

    Parameters
    ----------
    context : FactContext

    Attributes
    ----------
    shards : dict of str to int or None
        Copies of each shard in the job, by module; None if nothing is split.
    is_shared : bool
        This process trains with others.
    """

    def __init__(self, context: FactContext) -> None:
        self._model, self._observer, self._later = context.model, context.observer, context.later
        self._first_step: int | None = None
        self._names: tuple[str, ...] = ()
        self._dtypes: tuple[str, ...] = ()
        self._sizes: tuple[int, ...] = ()
        self._first: list[ReplicaState] = []
        self._last: deque[ReplicaState] = deque(maxlen=N_LAST)
        self._step, self._since = -1, 0.0
        self.shards: dict[str, int] | None = None
        self.is_shared = False
        self._is_through_wrapper: set[bool] = set()

    def called(self) -> None:
        """Note whether the wrapper that averages gradients has made a call, which begins now."""
        if is_distributed():
            self._is_through_wrapper.add(_is_through_wrapper())

    def look(self, step: int) -> bool:
        """Read the state before a step, on the training thread; return whether to at the next."""
        self.is_shared = is_distributed()
        if not self.is_shared:
            return False
        self._first_step = step if self._first_step is None else self._first_step
        is_early = step - self._first_step < N_FIRST
        model = self._model()
        if model is None or not (is_early or step % LOOK_EVERY == 0):
            return is_early
        weights = _replicated(model, self._observer)
        if not weights or len({one.device for _, one in weights}) > 1:
            return False
        try:
            # Detached, not without gradients: an interrupt could leave that mode on.
            detached = [one.detach() for _, one in weights]
            norms = [torch.linalg.vector_norm(one, dtype=torch.float64) for one in detached]
        except (NotImplementedError, RuntimeError):  # of a type or a device without float64
            return False
        optimizers = self._observer.updates.optimizers
        rates = tuple(known_rate(group) for one in optimizers for group in one.param_groups)
        names = tuple(name for name, _ in weights)
        if names != self._names:
            self._names = names
            self._sizes = tuple(one.numel() for _, one in weights)
            self._first, self._last = [], deque(maxlen=N_LAST)
        self._dtypes = tuple(str(one.dtype).removeprefix("torch.") for _, one in weights)
        self._later.read(norms, partial(self._keep, step, time.time(), names, rates))
        return is_early

    def _keep(
        self,
        step: int,
        now: float,
        names: tuple[str, ...],
        rates: tuple[float, ...],
        norms: Sequence[Any],
    ) -> None:
        if names == self._names:
            state = ReplicaState(step, now, np.array(norms, np.float64), rates)
            states = self._first if len(self._first) < N_FIRST else self._last
            states.append(state)

    def updates(self) -> None:
        """Look at which weights are split, before an update: forwards see them whole."""
        shards = shards_of(self._observer.steps.model_map)
        if shards != (self.shards or {}):
            self.shards = shards

    def waits_in(self) -> str:
        """Return the collective in which the training thread is now; empty if it is in none."""
        return waits_in(self._observer.updates.thread)

    def replica(self) -> Replica | None:
        """Return what is to be published; None before anything is known."""
        step = self._observer.clock.step
        if step != self._step:
            self._step, self._since = step, time.time()
        if not self._first:
            return None
        through = self._is_through_wrapper
        return Replica(
            names=self._names,
            dtypes=self._dtypes,
            sizes=self._sizes,
            states=(*self._first, *self._last),
            step=self._step,
            since=self._since,
            has_called_wrapper=len(through) == 1 if True in through else None,
            host=socket.gethostname(),
        )


def is_distributed() -> bool:
    """Return whether this process trains with others."""
    group = torch.distributed
    return group.is_available() and group.is_initialized() and group.get_world_size() > 1


def _is_through_wrapper() -> bool:
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None or frame.f_code is WRAPPER:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is WRAPPER


def _replicated(model: nn.Module, observer: Observer) -> list[tuple[str, Tensor]]:
    """Return the weights that should be the same on all ranks, with their paths."""
    if any(type(one).__name__ == "FullyShardedDataParallel" for one in model.modules()):
        return []
    found: dict[int, tuple[str, Tensor]] = {}
    for path, module in observer.steps.model_map.modules.items():
        is_wrapper = isinstance(module, DistributedDataParallel)
        if SPLIT in type(module).__name__ and not is_wrapper:
            continue
        for name, one in module._parameters.items():
            if one is not None and id(one) not in found and _is_whole(one):
                found[id(one)] = f"{path}.{name}" if path else name, one.detach()
    left_out = getattr(model, "parameters_to_ignore", ())
    return [both for both in found.values() if both[0] not in left_out][:MOST_WEIGHTS]


def _is_whole(weight: Tensor) -> bool:
    """Return whether a weight is no part of one that several ranks share, and no expert's."""
    is_split = getattr(weight, "tensor_model_parallel", False)
    is_local = getattr(weight, "allreduce", True) is False
    is_plain = type(weight.data) is Tensor and weight.is_floating_point() and not weight.is_meta
    return is_plain and not is_split and not is_local
