"""Copies of a state: each tensor's own values, however short what it is gathered into lives."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.plain import copied


class Sharded(Tensor):
    """Stands for a tensor that is split: asked for the whole, it gives one that nobody keeps."""

    def full_tensor(self) -> Tensor:
        return self.as_subclass(Tensor).clone()


def test_tensors_of_one_shape_keep_their_own_values() -> None:
    """The second may be gathered where the first one lay before it was let go."""
    values = [torch.full((64,), float(k)) for k in range(8)]
    for state in (
        {str(k): value.as_subclass(Sharded) for k, value in enumerate(values)},
        {str(k): value.to_sparse() for k, value in enumerate(values)},
    ):
        found = copied(state, Memory())
        assert [float(found[str(k)].to_dense()[-1]) for k in range(8)] == [*range(8)]


def test_what_is_shared_is_copied_once() -> None:
    weight = torch.ones(3)
    found = copied({"one": weight, "other": weight.detach(), "part": weight[:2]}, Memory())
    assert found["one"] is found["other"] is not found["part"]
