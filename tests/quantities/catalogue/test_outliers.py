"""Outliers, branches, gains and routers, as recorded, against numpy; and what is broken or odd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError, QuantityError, UnreadableError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.expert_routing import Winners, winners
from notebook_probe.quantities.catalogue.residual_branches import energy
from tests.quantities.attention_oracle import Array, wide

N_EXPERTS = 4


class Branch(nn.Module):
    """Takes a mask beside its input, and returns more than its output."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return torch.tanh(self.lin(x)) * mask, x.new_ones(3)


class Block(nn.Module):
    """A norm, a branch, a sum; a router beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.branch, self.router = nn.LayerNorm(6), Branch(), nn.Linear(6, N_EXPERTS)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mask = (torch.arange(6) != 2).float()
        return x + self.branch(self.norm(x), mask)[0], self.router(x)


def made() -> Block:
    torch.manual_seed(0)
    block = Block()
    with torch.no_grad():
        block.norm.weight.add_(torch.randn(6))
        block.norm.bias.add_(torch.randn(6))
    return block


def batches() -> list[Tensor]:
    """Of one step: two micro-batches of different size, one channel larger than the rest."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(n, 5, 6, generator=generator) * Tensor([1, 1, 20, 1, 1, 1]) for n in (3, 2)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    block = made()
    probes = {
        "branch": ["residual_ratio"],
        "": ["residual_change", "massive_ratio", "channel_kurtosis"],
        "norm": ["norm_gain_rms", "norm_bias_rms"],
        "router": ["router_load_entropy"],
    }
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    with nbp.watch(block, store=tmp_path_factory.mktemp("r") / "r.zarr", probes=probes) as run:
        for x in batches():
            block(x)[0].square().mean().backward()
        optimizer.step()
        assert not run.status().errors
    return run.data.isel(step=0).load()


def passes() -> list[dict[str, Array]]:
    """What a twin makes of each micro-batch."""
    block, every = made(), []
    for x in batches():
        normed = block.norm(x)
        y, scores = block(x)
        gone = block.branch(normed, (torch.arange(6) != 2).float())[0]
        tensors = {"x": x, "y": y, "scores": scores, "normed": normed, "gone": gone}
        every.append({name: wide(one) for name, one in tensors.items()})
    return every


def value(found: Any, name: str, module: str) -> float:
    return float(found[name].sel(module=module))


def flat(name: str) -> Array:
    return np.concatenate([one[name].ravel() for one in passes()])


def rows(name: str) -> Array:
    return np.concatenate([one[name].reshape(-1, one[name].shape[-1]) for one in passes()])


def test_a_branch_is_measured_by_its_first_tensors_over_the_whole_step(found: Any) -> None:
    expected = np.linalg.norm(flat("gone")) / np.linalg.norm(flat("normed"))
    assert value(found, "residual_ratio", "branch") == pytest.approx(expected, rel=1e-5)


def test_a_block_by_what_it_changes(found: Any) -> None:
    ratios = [np.linalg.norm(p["y"] - p["x"]) / np.linalg.norm(p["x"]) for p in passes()]
    assert value(found, "residual_change", "(root)") == pytest.approx(np.mean(ratios), rel=1e-5)


def test_massive_activations(found: Any) -> None:
    ratios = [np.abs(p["y"]).max() / np.median(np.abs(p["y"])) for p in passes()]
    assert value(found, "massive_ratio", "(root)") == pytest.approx(max(ratios), rel=1e-5)


def test_unequal_channels(found: Any) -> None:
    size = np.sqrt(np.mean(rows("y") ** 2, axis=0))
    expected = np.mean(size**4) / np.mean(size**2) ** 2
    assert value(found, "channel_kurtosis", "(root)") == pytest.approx(expected, rel=1e-5)
    assert expected > 2


def test_gain_and_bias(found: Any) -> None:
    norm = made().norm
    for name, parameter in (("gain", norm.weight), ("bias", norm.bias)):
        expected = np.sqrt(np.mean(wide(parameter) ** 2))
        assert value(found, f"norm_{name}_rms", "norm") == pytest.approx(expected, rel=1e-5)


def test_loads_of_experts(found: Any) -> None:
    loads = np.bincount(rows("scores").argmax(1), minlength=N_EXPERTS) / len(rows("scores"))
    used = loads[loads > 0]
    expected = -(used * np.log(used)).sum() / np.log(N_EXPERTS)
    assert value(found, "router_load_entropy", "router") == pytest.approx(expected, rel=1e-5)
    assert 0 < expected < 1


@pytest.mark.parametrize("name", ["norm_gain_rms", "attn_entropy"])
def test_a_linear_layer_is_refused_at_once(name: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    with (
        nbp.watch(model, store=tmp_path / "r.zarr", probes=None) as run,
        pytest.raises(NotApplicableError, match=r"'0' \(Linear\) (has no gain|computes no att)"),
    ):
        run.attach("0", name)


@pytest.mark.parametrize("module", [nn.Linear(2, 2), nn.LayerNorm(2, bias=False)])
def test_without_a_bias_there_is_a_gap(module: nn.Module) -> None:
    with pytest.raises(UnreadableError, match="has no gain and bias"):
        as_quantity("norm_bias_rms")(module)


def test_other_shapes_behind_a_block_are_a_gap() -> None:
    with pytest.raises(UnreadableError, match="comes in"):
        as_quantity("residual_change")(torch.zeros(2, 3), torch.zeros(2, 4))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -5.0, 2.0], 2.5),
        ([1.0, -5.0, 2.0, 4.0], 5 / 3),
        ([0.0, 0.0, 3.0], math.inf),
        ([0.0, 0.0], math.nan),
        ([], math.nan),
        ([1.0, math.nan], math.nan),
        ([1.0, 1.0, math.inf], math.inf),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_massive_ratio_of_odd_tensors(
    values: list[float], expected: float, dtype: torch.dtype
) -> None:
    found = float(as_quantity("massive_ratio")(torch.tensor(values, dtype=dtype)))
    assert found == pytest.approx(expected, nan_ok=True, rel=1e-6)


def test_a_branch_that_gets_nothing_has_no_ratio() -> None:
    nothing = energy(torch.zeros(3))
    assert math.isnan(as_quantity("residual_ratio")(nothing, energy(torch.ones(3))))


def test_even_and_collapsed_routers() -> None:
    load = as_quantity("router_load_entropy")
    assert float(load(winners(torch.eye(5), nn.Linear(5, 5)))) == pytest.approx(1.0)
    assert float(load(winners(torch.eye(5)[:1].repeat(4, 1), nn.Linear(5, 5)))) == 0.0
    broken = winners(torch.full((3, 2), torch.nan), nn.Linear(2, 2))
    assert math.isnan(load(broken))
    assert math.isnan(load(winners(torch.ones(3, 1), nn.Linear(1, 1))))


def test_routers_of_different_size_have_no_common_load() -> None:
    with pytest.raises(QuantityError, match="3 and with 4"):
        Winners(torch.ones(3)).merge(Winners(torch.ones(4)))


def test_loads_of_even_crowded_and_broken_routers() -> None:
    load, excess, dead = map(
        as_quantity, ("router_load", "router_max_violation", "dead_expert_fraction")
    )
    even, broken = winners(torch.eye(5), nn.Linear(5, 5)), torch.full((3, 2), torch.nan)
    assert load(even).tolist() == [0.2] * 5
    assert float(excess(even)) == pytest.approx(0.0)
    assert float(dead(even)) == 0.0
    crowded = winners(torch.eye(4)[[0, 0, 0, 2]], nn.Linear(4, 4))
    assert load(crowded).tolist() == [0.75, 0.0, 0.25, 0.0]
    assert (float(excess(crowded)), float(dead(crowded))) == (2.0, 0.5)
    nothing = winners(broken, nn.Linear(2, 2))
    assert math.isnan(excess(nothing))
    assert load(nothing).isnan().all()
    assert math.isnan(dead(nothing))
