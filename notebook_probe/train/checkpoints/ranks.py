"""States of all processes of a job, gathered for the one that writes."""

from __future__ import annotations

import io
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from notebook_probe.uninterrupted import uninterrupted

__all__ = ["gathered", "own_rank"]


def own_rank() -> tuple[int, int]:
    """Rank of this process, and how many there are."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def gathered(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Gather the states of all processes, by rank; every process calls it. Pickles only data."""
    if own_rank()[1] == 1:
        return [state]
    # Not all_gather_object, which unpickles what the other processes send.
    device = _device()
    own = _packed(state).to(device)
    sizes = [torch.zeros(1, dtype=torch.long, device=device) for _ in range(own_rank()[1])]
    dist.all_gather(sizes, torch.tensor([own.numel()], device=device))
    # all_gather takes equal sizes: the states are padded, and cut again.
    most = max(int(size) for size in sizes)
    parts = [torch.zeros(most, dtype=torch.uint8, device=device) for _ in sizes]
    dist.all_gather(parts, torch.nn.functional.pad(own, (0, most - own.numel())))
    return [_unpacked(part[: int(n)]) for part, n in zip(parts, sizes, strict=True)]


def _device() -> torch.device:
    """Return the device for the job's collectives."""
    # nccl exchanges tensors of CUDA devices only.
    kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _packed(state: dict[str, Any]) -> Tensor:
    file = io.BytesIO()
    with uninterrupted:  # torch would raise a RuntimeError in its place
        torch.save(state, file)
    # frombuffer warns about memory that cannot be written, such as that of bytes.
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def _unpacked(part: Tensor) -> dict[str, Any]:
    file = io.BytesIO(part.cpu().numpy().tobytes())
    return torch.load(file, weights_only=True)
