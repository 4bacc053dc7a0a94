"""What windows gather, as a checkpoint can hold it, and put into new ones."""

from __future__ import annotations

import io
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from notebook_probe.probes.reading.window_state import (
    UnkeepableError,
    are_alike,
    state_of,
    take_state,
)
from notebook_probe.quantities.reduce.slices import PathPoints


@dataclass(slots=True)
class _Pooled:
    """Something with slots in place of a dict."""

    n: int = 0
    total: Any = None


@dataclass(frozen=True)
class _Fixed:
    """Something that cannot be changed."""

    n: int = 0


class _Everything:
    """Attributes of every kind that is kept."""

    def __init__(self) -> None:
        self.number, self.text, self.nothing = 0.0, "", None
        self.tensor: Any = None
        self.array: Any = None
        self.losses: deque[float] = deque(maxlen=3)
        self.pairs: list[Any] = []
        self.by_name: dict[str, Any] = {}
        self.points = PathPoints(2)
        self.pooled = _Pooled()

    def update(self, *_: Any) -> None:
        self.number, self.text = 0.1, "seen"
        self.tensor, self.array = torch.arange(3.0), np.arange(4)
        self.losses.extend([1.0, 2.0, 3.0, 4.0])
        self.pairs = [(1, torch.ones(2)), (2, None)]
        self.by_name = {"a": np.float64(0.5), "b": [True]}
        self.points.add(torch.full((2,), 7.0))
        self.pooled = _Pooled(2, torch.ones(2))

    def reset(self) -> None: ...
    def compute(self) -> None: ...


def everything() -> Any:
    """Return such a window, whose methods take any number of tensors."""
    return _Everything()


def read_back(state: dict[str, Any]) -> dict[str, Any]:
    """Written and read as a checkpoint is, by which nothing runs."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def test_a_new_window_has_all_that_the_old_one_had() -> None:
    old, new = everything(), everything()
    old.update()
    assert not are_alike(old, new)
    take_state(new, read_back(state_of(old)))
    assert are_alike(old, new)
    assert new.losses == deque([2.0, 3.0, 4.0])
    assert new.losses.maxlen == 3
    assert isinstance(new.pairs[0], tuple)
    assert new.array.dtype == np.arange(4).dtype
    assert (new.pooled.n, new.pooled.total.tolist()) == (2, [1.0, 1.0])
    new.points.add(torch.full((2,), 8.0))
    assert [point.tolist() for point in new.points.points] == [[7.0, 7.0], [8.0, 8.0]]


def test_it_shares_no_memory_with_the_old_one() -> None:
    old, new = everything(), everything()
    old.update()
    take_state(new, state_of(old))
    old.tensor.fill_(9.0)
    old.array[:] = 9
    assert new.tensor.tolist() == [0.0, 1.0, 2.0]
    assert new.array.tolist() == [0, 1, 2, 3]


def test_what_is_code_is_not_kept() -> None:
    window = everything()
    window.text = print
    with pytest.raises(UnkeepableError, match="builtin_function_or_method"):
        state_of(window)


def test_an_object_that_a_new_window_has_not_is_refused() -> None:
    old = everything()
    old.nothing = PathPoints(2)
    with pytest.raises(UnkeepableError):
        take_state(everything(), state_of(old))


def test_an_object_that_cannot_be_changed_is_refused() -> None:
    old, new = everything(), everything()
    old.pooled, new.pooled = _Fixed(1), _Fixed()
    with pytest.raises(UnkeepableError, match=r"_Fixed\.n"):
        take_state(new, state_of(old))
