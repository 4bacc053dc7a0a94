"""What the record says of series that end, and a heat map of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.record.views.thinning.heat_grid import UNMEASURED, Grid, HeatGrid


def trained(store: Path, act: Callable[[nbp.Run], Any]) -> nbp.OpenedRun:
    """Sixteen steps of two layers; something is done before step 8."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    probes = {"*": ["grad_norm", "weight_norm"]}
    run = nbp.watch(model, optimizer, store=store, budget=None, probes=probes)
    for step in range(16):
        if step == 8:
            act(run)
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        run.log(loss=1.0)
    run.close()
    return nbp.open_run(store)


def drawn(run: nbp.OpenedRun, quantity: str) -> Grid:
    heat = HeatGrid(quantity, 700)
    heat.read_new(run)
    grid = heat.grid(["0", "1"])
    assert grid is not None
    return grid


def ended(run: nbp.OpenedRun) -> list[Any]:
    return [json.loads(event.detail)["ended"] for event in run.events if event.kind == "detach"]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda run: run.detach("1", "grad_norm"), {"grad_norm": ["1"]}),
        (lambda run: run.detach("*", "grad_norm"), {"grad_norm": None}),
        (lambda run: run.detach("*"), {"grad_norm": None, "weight_norm": None}),
    ],
)
def test_the_event_of_a_detach_names_the_series_that_end(
    tmp_path: Path, act: Callable[[nbp.Run], Any], expected: dict[str, list[str] | None]
) -> None:
    run = trained(tmp_path / "a.zarr", act)
    assert ended(run) == [expected]
    for quantity in ("grad_norm", "weight_norm"):
        grid = drawn(run, quantity)
        assert grid.end == 15
        for row, module in enumerate(("0", "1")):
            is_over = quantity in expected and module in (expected[quantity] or ["0", "1"])
            hatched = np.flatnonzero(grid.state[row] == UNMEASURED)
            assert set(hatched) == (set(range(8, 16)) if is_over else set())


def test_a_series_that_a_slower_schedule_continues_has_no_hole(tmp_path: Path) -> None:
    def slower(run: nbp.Run) -> None:
        run.detach("*", "grad_norm")
        run.attach("*", "grad_norm", "every(5)")

    run = trained(tmp_path / "a.zarr", slower)
    assert ended(run) == [{}]
    grid = drawn(run, "grad_norm")
    assert not grid.state.any()
    assert grid.measured[0].tolist() == [*range(8), 7, 7, 10, 10, 10, 10, 10, 15]
    for row, module in enumerate(("0", "1")):
        series = run.series(module, "grad_norm")
        values = series.sel(step=grid.measured[row]).values
        np.testing.assert_array_equal(grid.mean[row], values)
