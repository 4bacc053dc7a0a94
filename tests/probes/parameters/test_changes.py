"""What a step changes, read of many weights together."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp


class Sharded(nn.Parameter):
    """A weight of which this process cannot get its shard."""

    def to_local(self) -> Tensor:
        raise RuntimeError("the others have gone")


def lengths(model: nn.Sequential) -> dict[str, float]:
    """Of the change of each layer's weight, by the definition, in a step of plain descent."""
    layers = {path: layer for path, layer in model.named_children() if isinstance(layer, nn.Linear)}
    before = {path: layer.weight.detach().double().clone() for path, layer in layers.items()}
    descend(model)
    after = {path: layer.weight.detach().double() for path, layer in layers.items()}
    return {path: float((after[path] - before[path]).norm()) for path in layers}


def size_of(layer: nn.Module) -> float:
    weight = next(layer.parameters()).detach().double()
    return float(weight.square().sum().sqrt())


def descend(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(5, 4)).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_changes_of_layers_of_many_shapes_are_those_of_each(
    tmp_path: Path, kind: torch.dtype
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 1), nn.Linear(1, 1300))
    model[2].to(kind)
    model[2].register_forward_pre_hook(lambda module, args: args[0].to(kind))
    model[3].register_forward_pre_hook(lambda module, args: args[0].float())
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"*": ["update_norm"]}) as run:
        wanted = [lengths(model) for _ in range(3)]
        assert not run.status().errors
    for path in ("0", "2", "3"):
        found = run.series(path, "update_norm").values
        np.testing.assert_allclose(found, [step[path] for step in wanted], rtol=1e-5)


def test_changes_of_small_and_large_weights_are_those_of_each(tmp_path: Path) -> None:
    torch.manual_seed(0)
    widths = (4, 200, 200, 200, 300, 300, 7)
    model = nn.Sequential(*(nn.Linear(*sizes) for sizes in pairwise(widths)))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"*": ["update_norm"]}) as run:
        wanted = [lengths(model) for _ in range(2)]
        assert not run.status().errors
    for path in wanted[0]:
        found = run.series(path, "update_norm").values
        np.testing.assert_allclose(found, [step[path] for step in wanted], rtol=1e-5)


def test_a_weight_that_cannot_be_copied_takes_no_other_with_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    last = nn.Linear(3, 2)
    last.weight = Sharded(last.weight.detach())
    model = nn.Sequential(nn.Linear(4, 3), last)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"*": ["update_norm"]}) as run:
        wanted = [lengths(model)["0"] for _ in range(2)]
        errors = run.status().errors
    assert "the others have gone" in str(errors)
    np.testing.assert_allclose(run.series("0", "update_norm").values, wanted, rtol=1e-5)


def test_weights_are_read_whether_or_not_they_are_copied(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 7), nn.Linear(7, 3), nn.Linear(3, 2), nn.Linear(2, 2))
    model[1].requires_grad_(False)
    model[2].to(torch.bfloat16)
    model[2].register_forward_pre_hook(lambda module, args: args[0].bfloat16())
    model[3].register_forward_pre_hook(lambda module, args: args[0].float())
    layers = dict(model.named_children())
    wanted: dict[str, list[tuple[float, float]]] = {path: [] for path in layers}
    probes = {"*": ["weight_norm", "update_norm"]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes, budget=None) as run:
        for _ in range(3):
            sizes = {path: size_of(layer) for path, layer in layers.items()}
            changes = lengths(model)
            for path in layers:
                wanted[path].append((sizes[path], changes[path]))
    for path in layers:
        found = run.series(path, "weight_norm").values
        np.testing.assert_allclose(found, [size for size, _ in wanted[path]], rtol=1e-5)
    for path in ("0", "2", "3"):
        found = run.series(path, "update_norm").values
        np.testing.assert_allclose(found, [change for _, change in wanted[path]], rtol=1e-3)
