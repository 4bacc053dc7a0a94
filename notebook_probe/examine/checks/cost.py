"""Time and memory of one step."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch.autograd.graph import saved_tensors_hooks

from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject

__all__ = ["step_cost"]

N_STEPS = 3
UNITS = ("B", "kB", "MB", "GB")


def step_cost(subject: Subject) -> Iterator[Finding]:
    """Time some forwards and backwards, and add up what a forward keeps for the backward."""
    seconds, kept = list[float](), dict[int, int]()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        # By storage, as views of one share its bytes.
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    for _ in range(N_STEPS):
        begin = time.perf_counter()
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            trained = subject.train()
        if trained is None:
            return
        for one in trained.gradients.values():
            if one is not None and not one.is_cpu:
                # Kernels are queued: only now all is computed.
                torch.accelerator.synchronize()
                break
        seconds.append(time.perf_counter() - begin)
    own = list(subject.model.parameters())
    weights = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in own}
    activations = sum(size for place, size in kept.items() if place not in weights)
    # The least of the times, as whatever else the machine does can only add to one.
    text = (
        f"forward and backward of this batch take {1e3 * min(seconds):.3g} ms; parameters are "
        f"{_bytes(sum(weights.values()))}, and {_bytes(activations)} is kept for the backward"
    )
    yield Finding("cost", "good", text)


def _bytes(n: float) -> str:
    for unit in UNITS:
        if n < 1000 or unit == UNITS[-1]:
            return f"{n:.3g} {unit}"
        n /= 1000
    raise AssertionError
