"""The picture of a parameter's histograms: a column per step, between common ends."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.figures import histograms


def test_columns_are_steps_and_every_one_has_all_elements(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(6, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    run = nbp.watch(model, optimizer, store=tmp_path / "run.zarr", probes=None)
    run.attach("weight", ["param_histogram", "weight_min", "weight_max"], "every(2)")
    lowest = np.inf
    for step in range(6):
        if step % 2 == 0:
            lowest = min(lowest, float(model.weight.detach().min()))
        loss = model(torch.randn(8, 6)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    run.close()
    figure = histograms(nbp.open_run(tmp_path / "run.zarr"), "weight")
    axes = figure.axes[0]
    shown = axes.images[0].get_array()
    assert shown is not None
    drawn = np.ma.filled(shown, 0.0)
    assert drawn.shape == (30 // 10 + 1, 3)
    np.testing.assert_allclose(drawn.sum(axis=0), 30)
    assert axes.images[0].get_extent()[2] == pytest.approx(lowest)
    assert "weight" in axes.get_title(loc="left")
