"""Silent channels, counted by hand and by numpy, of data and of what a network made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import UnreadableError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.silent_inputs import reach

SHARE = as_quantity("silent_input_fraction")


def made(values: Tensor) -> Tensor:
    """The same, as a network makes it."""
    return 1.0 * values.requires_grad_()


def share(*calls: Tensor, module: nn.Module | None = None) -> float:
    states = [reach(call, module or nn.Linear(3, 3)) for call in calls]
    state = states[0]
    for other in states[1:]:
        state = state.merge(other)
    return float(SHARE(state))


def columns(*live: bool, n_rows: int = 40) -> Tensor:
    return torch.ones(n_rows, len(live)) * torch.tensor(live)


def test_a_channel_is_silent_if_it_is_zero_in_every_row_of_every_call() -> None:
    assert share(made(columns(True, False, False, False))) == 0.75
    assert share(made(-columns(True, False, False, False))) == 0.75
    both = made(columns(True, False)), made(columns(False, False))
    assert share(*both) == 0.5


def test_channels_lie_where_the_module_has_them() -> None:
    images = torch.zeros(2, 4, 5, 5)
    images[1, 2, 3, 3] = 1.0
    assert share(made(images), module=nn.Conv2d(4, 4, 3)) == 0.75
    assert share(made(images.movedim(1, -1)), module=nn.Linear(4, 4)) == 0.75


def test_a_channel_with_a_nan_is_not_silent() -> None:
    broken = columns(True, False, False)
    broken[7, 1] = math.nan
    assert share(made(broken)) == pytest.approx(1 / 3)


def test_few_rows_tell_nothing() -> None:
    assert math.isnan(share(made(columns(True, False, n_rows=31))))
    assert share(made(columns(True, False, n_rows=32))) == 0.5
    assert share(*[made(columns(True, False, n_rows=16))] * 2) == 0.5


def test_of_data_channels_may_be_empty_on_purpose_unless_all_are() -> None:
    categories = torch.eye(40, 100)
    assert math.isnan(share(categories))
    assert share(made(categories)) == pytest.approx(0.6)
    assert math.isnan(share(columns(True, False, False, False)))
    assert share(torch.zeros(40, 3)) == 1.0


def test_indices_have_no_channels_and_nothing_has_no_rows() -> None:
    with pytest.raises(UnreadableError, match="indices"):
        reach(torch.zeros(40, dtype=torch.int64), nn.Embedding(4, 4))
    with pytest.raises(UnreadableError, match="no row"):
        reach(torch.zeros(0, 4), nn.Linear(4, 4))


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(32, 60), st.integers(1, 9), st.floats(0.5, 1.0), st.integers(0, 99))
def test_it_is_what_numpy_counts(n_rows: int, width: int, zeros: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(n_rows, width)) * (draw.random((n_rows, width)) > zeros**0.05)
    for dtype in (torch.float32, torch.float16, torch.float64):
        found = share(made(torch.tensor(rows).to(dtype)))
        assert found == pytest.approx((torch.tensor(rows).to(dtype).numpy() == 0).all(0).mean())


class Dead(nn.Module):
    """Its first layer is dead, by a function instead of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        nn.init.constant_(self.first.bias, -100.0)
        nn.init.constant_(self.first.bias[:2], 100.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def test_a_unit_that_is_dead_behind_a_function_is_seen_where_it_arrives(tmp_path: Path) -> None:
    model = Dead()
    probes: Any = {"*": ["silent_input_fraction", "zero_fraction"]}
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=probes) as run:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.rand(40, 4)).square().mean().backward()
            optimizer.step()
    assert run.series("second", "silent_input_fraction").values.tolist() == [0.75] * 3
    assert run.series("first", "silent_input_fraction").values.tolist() == [0.0] * 3
    assert run.series("first", "zero_fraction").values.tolist() == [0.0] * 3
