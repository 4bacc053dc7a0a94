"""Every scalar quantity of a training step, against float64 by hand from an unwatched twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import as_quantity

Array: TypeAlias = npt.NDArray[np.float64]


class Net(nn.Module):
    """A convolution, an activation that silences half of it, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act, self.head = nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Linear(80, 4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.act(self.conv(x)).flatten(1))
        return found


@dataclass
class Seen:
    """What one module saw in the last step, in float64."""

    x: Array
    y: Array
    gy: Array
    channels: int
    """Axis of y."""
    w: Array | None
    g: list[Array]
    moved: Array | None

    @property
    def rows(self) -> Array:
        return np.moveaxis(self.y, self.channels, -1).reshape(-1, self.y.shape[self.channels])

    @property
    def grad_rows(self) -> Array:
        return np.moveaxis(self.gy, self.channels, -1).reshape(-1, self.gy.shape[self.channels])

    @property
    def every_g(self) -> Array:
        return np.concatenate([one.ravel() for one in self.g])


def rms(values: Array | None) -> float:
    assert values is not None
    return float(np.sqrt(np.mean(values**2)))


def size(values: Array | None) -> float:
    assert values is not None
    return float(np.sqrt(np.sum(values**2)))


def matrix(seen: Seen) -> Array:
    assert seen.w is not None
    return seen.w.reshape(len(seen.w), -1)


def entropy_rank(rows: Array) -> float:
    s = np.linalg.svd(rows, compute_uv=False)
    p = s / s.sum() + 1e-7
    return float(np.exp(-(p * np.log(p)).sum()))


def participation(rows: Array) -> float:
    values = np.linalg.eigvalsh(np.cov(rows.T))
    return float(values.sum() ** 2 / (values**2).sum())


OF_CALLS: dict[str, Callable[[Seen], float]] = {
    "input_rms": lambda s: rms(s.x),
    "input_abs_max": lambda s: float(np.abs(s.x).max()),
    "output_rms": lambda s: rms(s.y),
    "output_abs_max": lambda s: float(np.abs(s.y).max()),
    "output_grad_rms": lambda s: rms(s.gy),
    "output_grad_abs_max": lambda s: float(np.abs(s.gy).max()),
    "range_headroom_bits": lambda s: math.log2(float(np.finfo(np.float32).max) / np.abs(s.y).max()),
    "output_grad_headroom_bits": lambda s: math.log2(
        float(np.finfo(np.float32).max) / np.abs(s.gy).max()
    ),
    "underflow_fraction": lambda s: 0.0,
    "output_grad_underflow_fraction": lambda s: float(
        np.mean((s.gy != 0) & (np.abs(s.gy) < 2.0**-24))
    ),
    "effective_rank": lambda s: entropy_rank(s.rows),
    "participation_ratio": lambda s: participation(s.rows),
    "output_grad_cov_max_eig": lambda s: float(np.linalg.eigvalsh(np.cov(s.grad_rows.T))[-1]),
}
OF_PARAMETERS: dict[str, Callable[[Seen], float]] = {
    "weight_rms": lambda s: rms(s.w),
    "weight_abs_max": lambda s: float(np.abs(matrix(s)).max()),
    "grad_rms": lambda s: rms(s.every_g),
    "grad_abs_max": lambda s: float(np.abs(s.every_g).max()),
    "grad_zero_fraction": lambda s: float(np.mean(s.every_g == 0)),
    "weight_grad_norm": lambda s: size(s.g[0]),
    "update_norm": lambda s: size(s.moved),
    "spectral_norm": lambda s: float(np.linalg.svd(matrix(s), compute_uv=False)[0]),
    "weight_stable_rank": lambda s: float(
        size(matrix(s)) ** 2 / np.linalg.svd(matrix(s), compute_uv=False)[0] ** 2
    ),
}
MODULES = {"conv": 1, "act": 1, "head": 1}


def wide(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy().copy()


def train(model: Net, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(6, 2, 6, 6, generator=generator)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def see(steps: int) -> dict[str, Seen]:
    """The last of some steps of an unwatched twin."""
    torch.manual_seed(0)
    model, kept = Net(), dict[str, dict[str, Any]]()
    before: dict[str, Array] = {}

    def forward(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            kept[path] = {"x": wide(args[0]), "y": wide(output)}
            output.register_hook(lambda grad: kept[path].update(gy=wide(grad)))
            before.update({name: wide(value) for name, value in model.named_parameters()})

        return hook

    for path in MODULES:
        model.get_submodule(path).register_forward_hook(forward(path))
    train(model, steps)
    seen = {}
    for path, channels in MODULES.items():
        own = dict(model.get_submodule(path).named_parameters())
        w = before.get(f"{path}.weight")
        moved = wide(own["weight"]) - w if w is not None else None
        grads = [wide(value.grad) for value in own.values() if value.grad is not None]
        seen[path] = Seen(**kept[path], channels=channels, w=w, g=grads, moved=moved)
    return seen


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    torch.manual_seed(0)
    model, store = Net(), Path(tmp_path_factory.mktemp("runs")) / "run.zarr"
    probes = {
        **{path: [*OF_CALLS, *OF_PARAMETERS] for path in ("conv", "head")},
        "act": [*OF_CALLS],
    }
    with nbp.watch(model, store=store, probes=probes) as run:
        train(model, 3)
        assert not run.status().errors
    return run.data.isel(step=-1).load()


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    return see(3)


@pytest.mark.parametrize("path", MODULES)
@pytest.mark.parametrize("name", [*OF_CALLS, *OF_PARAMETERS])
def test_the_recorded_value_is_that_of_the_definition(
    name: str, path: str, recorded: Any, seen: dict[str, Seen]
) -> None:
    if path == "act" and name in OF_PARAMETERS:
        assert np.isnan(recorded[name].sel(module=path)), "it has no parameter"
        return
    want = {**OF_CALLS, **OF_PARAMETERS}[name](seen[path])
    np.testing.assert_allclose(float(recorded[name].sel(module=path)), want, rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("RankMe", "effective_rank"),
        ("BackwardOutputEigOfCov", "output_grad_cov_max_eig"),
        ("WeightGradNorm", "weight_grad_norm"),
    ],
)
def test_the_names_of_other_systems_are_known(alias: str, name: str) -> None:
    assert as_quantity(alias).name == name
