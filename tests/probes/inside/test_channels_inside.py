"""Values of channels from compiled graphs, against numpy on an eager twin in float64."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.probes.inside.plans import can_read
from notebook_probe.probes.step.probe import Probe
from tests.models import floats, loss_of, made, sgd
from tests.probes.inside.compiled_models import n_breaks, n_graphs, whole
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

OF_OUTPUT = (
    "output_channel_mean",
    "output_channel_std",
    "output_channel_rms",
    "output_channel_norm",
    "output_channel_abs_max",
    "dead_fraction",
    "dormant_fraction",
)
OF_INPUT = (
    "input_channel_mean",
    "input_channel_std",
    "input_channel_rms",
    "input_channel_norm",
    "input_channel_abs_max",
)
EVERYWHERE = (*OF_OUTPUT, *OF_INPUT, "residual_ratio", "router_load", "output_norm")
N_STEPS = 2


class Images(nn.Module):
    """Has channels on two axes, dead ones, and an activation with bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(2, 3, 3, padding=1), nn.ReLU()
        self.head, self.tanh = nn.Linear(3, 4), nn.Tanh()
        assert self.conv.bias is not None
        with torch.no_grad():
            self.conv.bias.copy_(torch.tensor([-100.0, 0.1, 0.2]))

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(x))
        return self.tanh(self.head(x.mean((2, 3))))


images = floats(6, 2, 5, 5)


def rows_of(tensor: Tensor) -> Any:
    """Rows (sample, channel): the channels of images are on axis 1."""
    array = tensor.detach().double().numpy()
    return np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


def numbers(x: Tensor, y: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, rows in (("input", rows_of(x)), ("output", rows_of(y))):
        found |= {
            f"{name}_channel_mean": rows.mean(0),
            f"{name}_channel_std": rows.std(0, ddof=1),
            f"{name}_channel_rms": np.sqrt((rows**2).mean(0)),
            f"{name}_channel_norm": np.sqrt((rows**2).sum(0)),
            f"{name}_channel_abs_max": np.abs(rows).max(0),
        }
    inputs, outputs = rows_of(x), rows_of(y)
    sizes = np.abs(outputs).sum(0)
    found["dead_fraction"] = (outputs.max(0) <= 0).mean()
    found["dormant_fraction"] = (sizes / sizes.mean() <= 0.025).mean()
    found["residual_ratio"] = np.sqrt((outputs**2).sum() / (inputs**2).sum())
    winners = np.bincount(outputs.argmax(1), minlength=outputs.shape[1])
    found["router_load"] = winners / winners.sum()
    found["output_norm"] = np.sqrt((outputs**2).sum())
    return found


def told_by_twin(model: nn.Module, places: tuple[str, ...]) -> dict[tuple[str, str], list[Any]]:
    twin = copy.deepcopy(model).double()
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    for place in places:
        twin.get_submodule(place).register_forward_hook(
            lambda module, args, output, place=place: seen.update({place: (args[0], output)})
        )
    found: dict[tuple[str, str], list[Any]] = {}
    optimizer = sgd(twin)
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss_of(twin(images(step).double())).backward()
        optimizer.step()
        for place, (x, y) in seen.items():
            for name, value in numbers(x, y).items():
                found.setdefault((place, name), []).append(value)
    return found


def trained(model: nn.Module, called: Any) -> None:
    optimizer = sgd(model)
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss_of(called(images(step))).backward()
        optimizer.step()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_quantities_of_channels_have_the_values_of_an_eager_twin(
    backend: str, watch: Watch
) -> None:
    model = made(Images)
    wanted = told_by_twin(model, ("relu", "head"))
    run = watch(model, probes={("relu", "head"): [*EVERYWHERE]})
    before = n_graphs()
    trained(model, whole(model, backend))
    assert n_graphs() - before == 1
    assert n_breaks() == 0
    run.controls.settle()
    for (place, quantity), values in wanted.items():
        if quantity == "dead_fraction" and place == "head":
            continue  # not of a module that is no activation
        series = run.series(place, quantity)
        width = np.size(values[0])
        assert series.step.size == N_STEPS, f"{quantity} at {place}"
        found = np.asarray(series).reshape(N_STEPS, -1)[:, :width]
        np.testing.assert_allclose(
            found,
            np.reshape(values, (N_STEPS, -1)),
            rtol=2e-5,
            atol=1e-6,
            err_msg=f"{quantity} at {place}",
        )
    assert not run.status().errors


def test_the_share_of_outputs_at_a_bound_is_counted_in_the_graph(watch: Watch) -> None:
    model = made(Images)
    with torch.no_grad():
        model.head.weight.mul_(30.0)
    twin = copy.deepcopy(model)
    run = watch(model, probes={"tanh": ["saturated_fraction"]})
    trained(model, whole(model, "aot_eager"))
    expected = (twin(images(0)).abs() > 0.97).double().mean().item()
    assert 0 < expected < 1
    assert run.series("tanh", "saturated_fraction").values[0] == pytest.approx(expected)


class Tokens(nn.Module):
    """Is given indices, which have no channels."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embed(tokens))


def test_indices_have_no_channels_and_the_model_trains_on(watch: Watch) -> None:
    model = made(Tokens)
    run = watch(model, probes={"embed": ["input_channel_mean", "output_channel_rms"]})
    called, optimizer = whole(model, "aot_eager"), sgd(model)
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss_of(called(torch.arange(6).reshape(2, 3) % (step + 2))).backward()
        optimizer.step()
    run.controls.settle()
    values = {probe.quantity: probe.n_values for probe in run.probes()}
    assert values == {"input_channel_mean": 0, "output_channel_rms": N_STEPS}
    assert not run.status().errors


def test_calls_of_one_module_are_pooled_channel_by_channel(watch: Watch) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x).tanh())

    model = made(Twice)
    x = floats(5, 4)(0)
    first = model.layer(x)
    rows = rows_of(torch.cat([first, model.layer(first.tanh())]))
    run = watch(model, probes={"layer": ["output_channel_std", "output_channel_abs_max"]})
    loss_of(whole(model, "aot_eager")(x)).backward()
    sgd(model).step()
    run.controls.settle()
    np.testing.assert_allclose(
        run.series("layer", "output_channel_std").values[0], rows.std(0, ddof=1), rtol=1e-5
    )
    np.testing.assert_allclose(
        run.series("layer", "output_channel_abs_max").values[0], np.abs(rows).max(0), rtol=1e-6
    )


def test_quantities_that_graphs_hand_out_are_these() -> None:
    def is_inside(name: str) -> bool:
        return can_read(Probe("", nbp.quantities.as_quantity(name), nbp.Every(1)))

    assert all(map(is_inside, (*EVERYWHERE, "saturated_fraction", "output_grad_rms")))
    assert is_inside("input_grad_norm")
    assert not any(map(is_inside, ("effective_rank", "output_quantiles")))
