"""Copies of a state: each tensor's own values, however short what it is gathered into lives."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from torch import Tensor

from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.plain import copied
from notebook_probe.train.generators import generator_states, set_generators
from tests.train.conftest import a_loop, batches


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


def test_a_save_copies_generators_as_arrays_in_few_calls(tmp_path: Path) -> None:
    """Copied number by number, the generators alone took about 5,000 calls."""
    loop, data = a_loop(), batches(1)
    loop.run_steps(data, 1)
    loop.save_checkpoint(tmp_path / "warm up")
    assert calls_of(lambda: loop.save_checkpoint(tmp_path / "counted", background=True)) < 600
    loop.kept.wait()


def calls_of(act: Callable[[], object]) -> int:
    calls: list[FrameType] = []
    profiled = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: calls.append(frame) if event == "call" else None)
    try:
        act()
    finally:
        sys.setprofile(profiled)
    return len(calls)


def test_generators_of_a_checkpoint_with_lists_of_numbers_are_put_back() -> None:
    """Checkpoints of earlier versions hold the words of a generator as lists."""
    states = generator_states()
    version, words, gauss = states["python"]
    kind, keys, *rest = states["numpy"]
    earlier = {
        **states,
        "python": (version, tuple(words.tolist()), gauss),
        "numpy": [kind, keys.tolist(), *rest],
    }
    expected = random.random(), np.random.random()
    for state in (earlier, states):
        random.seed(1), np.random.seed(1)
        set_generators(state)
        assert (random.random(), np.random.random()) == expected
