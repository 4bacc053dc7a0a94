"""Saying where the channels of a module's tensors are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError, UnknownNameError
from tests.models import made, mlp
from tests.run.conftest import Watch


class Block(nn.Module):
    """As of a ConvNeXt: channels last between two permutations."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm, self.up, self.act = nn.LayerNorm(4), nn.Linear(4, 8), nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x).permute(0, 2, 3, 1)
        found: Tensor = self.act(self.up(self.norm(x)))
        return found


class Stages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Block(), Block()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.two(self.one(x).permute(0, 3, 1, 2)[:, :3])
        return found


def step(model: nn.Module) -> Tensor:
    """One backward; returns what the first activation gave."""
    seen: list[Tensor] = []
    hook = model.get_submodule("one.act").register_forward_hook(lambda m, x, y: seen.append(y))
    model(torch.randn(2, 3, 5, 7)).square().mean().backward()
    hook.remove()
    return seen[0].detach().double()


@pytest.mark.parametrize("where", ["*.act", "GELU", nn.GELU, lambda path, m: path.endswith("act")])
def test_channels_are_where_one_says_they_are(where: Any, watch: Watch) -> None:
    model = made(Stages)
    run = watch(model, probes={"*.act": ["output_channel_mean"]}, channel_axis={where: -1})
    y = step(model)
    run.step()
    found = run.series("one.act", "output_channel_mean")[0]
    np.testing.assert_allclose(found, y.mean((0, 1, 2)), rtol=1e-5)
    run.close()
    told = xr.open_zarr(run.location).attrs["channel_axis"]
    assert json.loads(told) == {"one.act": -1, "two.act": -1}


def test_spectra_dead_units_and_predictions_follow(watch: Watch) -> None:
    names = ["effective_rank", "dead_fraction", "confidence", "dormant_fraction"]
    model = made(Stages)
    run = watch(model, probes={"one.act": names}, channel_axis={"one.act": 3})
    rows = step(model).reshape(-1, 8)
    run.step()
    sizes = np.linalg.svd(rows.numpy(), compute_uv=False)
    shares = sizes / sizes.sum() + 1e-7
    at = run.data.sel(module="one.act").isel(step=0)
    assert float(at.effective_rank) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), 1e-4)
    assert float(at.dead_fraction) == pytest.approx(float((rows.amax(0) <= 0).double().mean()))
    assert float(at.confidence) == pytest.approx(float(rows.softmax(1).amax(1).mean()), rel=1e-5)


def test_without_a_word_they_are_on_the_axis_of_most_modules(watch: Watch) -> None:
    model = made(Stages)
    run = watch(model, probes={"*.act": ["output_channel_mean"]})
    y = step(model)
    run.step()
    found = run.series("one.act", "output_channel_mean")[0]
    np.testing.assert_allclose(found, y.mean((0, 2, 3)), rtol=1e-5)
    assert "channel_axis" not in run.data.attrs


def test_the_later_entry_counts_and_the_last_watch(watch: Watch) -> None:
    model = made(Stages)
    run = watch(model, probes=None, channel_axis={"*.act": 1, "one.act": -1, "two": 2})
    assert json.loads(run.data.attrs["channel_axis"]) == {"one.act": -1, "two.act": 1, "two": 2}
    run = watch(model, probes={"one.act": ["output_channel_mean"]})
    step(model)
    run.step()
    assert run.series("one.act", "output_channel_mean").sizes["index"] == 5


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"aktion": -1}, UnknownNameError, "aktion"),
        ({"0.weight": 1}, NotApplicableError, "'0.weight' is a parameter"),
        ({"0": "last"}, ValueError, "'0': 'last'; an axis is 1, -1 or the like"),
        ({"0": True}, ValueError, "an axis is 1, -1"),
    ],
)
def test_what_is_no_axis_of_a_module_is_refused_before_a_record_is_made(
    given: Any, error: type[Exception], said: str, tmp_path: Any
) -> None:
    with pytest.raises(error, match=said):
        nbp.watch(made(mlp), store=tmp_path / "run.zarr", channel_axis=given)
    assert not (tmp_path / "run.zarr").exists()
