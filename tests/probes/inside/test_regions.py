"""Layers that are compiled separately share their graphs, and no limit of Dynamo is reached."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, made, sgd, train_step
from tests.probes.inside.compiled_models import n_breaks, n_graphs, told_by_twin
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

N_LAYERS = 10
"""More than Dynamo compiles variants of a function."""

batch = floats(5, 4)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.act = nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU()
        self.down = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.act(self.up(self.norm(x))))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(N_LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def by_regions(model: Deep, backend: str = "aot_eager") -> Deep:
    for layer in model.layers:
        layer.compile(backend=backend, fullgraph=True)
    return model


def graphs_of(model: nn.Module, n_steps: int) -> list[int]:
    """Train, and return how many graphs were compiled in each step."""
    optimizer, counts = sgd(model), []
    for step in range(n_steps):
        before = n_graphs()
        train_step(model, optimizer, batch(step))
        counts.append(n_graphs() - before)
    return counts


def test_layers_that_read_alike_share_their_graphs(watch: Watch) -> None:
    alone, model = by_regions(made(Deep)), made(Deep)
    n_alone = graphs_of(alone, 5)
    assert n_alone == [2, 0, 0, 0, 0], "the first layer's input needs no gradient"
    torch._dynamo.reset()
    quantities = ("output_norm", "output_grad_norm", "output_channel_rms")
    run = watch(model, probes={"*": [[one, "every(2)"] for one in quantities]})
    assert sum(graphs_of(by_regions(model), 5)) == 4, "each of these two with readings and without"
    assert n_breaks() == 0
    assert differing(everything(alone), everything(model)) == []
    run.controls.settle()
    assert {probe.n_values for probe in run.probes() if probe.module != "layers"} == {3}


def test_each_layer_has_its_own_values(watch: Watch) -> None:
    model = made(Deep)
    places = [f"layers.{i}.{name}" for i in range(N_LAYERS) for name in ("up", "act", "down")]
    for one in places:
        model.get_submodule(one).register_forward_pre_hook(lambda *_: None)
    wanted = told_by_twin(model, places, 2, lambda step: [batch(step)])
    model = made(Deep)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm", "input_norm"]})
    optimizer = torch.optim.SGD(by_regions(model).parameters(), lr=0.1)
    for step in range(2):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    for place in places:
        for quantity in ("output_norm", "output_grad_norm", "input_norm"):
            np.testing.assert_allclose(
                run.series(place, quantity),
                wanted[place, quantity],
                rtol=2e-5,
                err_msg=f"{quantity} at {place}",
            )


SETS = [("output_norm",), ("output_mean",), ("zero_fraction",), ("output_abs_max",),
        ("output_norm", "zero_fraction"), ("output_mean", "zero_fraction"),
        ("output_abs_max", "output_mean"), ("output_abs_max", "zero_fraction")]  # fmt: skip


@pytest.mark.parametrize("watched_first", [True, False])
def test_layers_that_read_in_too_many_ways_are_not_read_and_the_status_says_so(
    watched_first: bool, watch: Watch
) -> None:
    """Each way needs a separate graph, and Dynamo refuses a function with too many of them."""
    model = made(Deep)
    model = model if watched_first else by_regions(model)
    run = watch(model, probes={f"layers.{i}.up": [*SETS[i]] for i in range(len(SETS))})
    assert graphs_of(by_regions(model), 3) == [3, 0, 0], "some layers have hooks"
    run.controls.settle()
    assert all("recompile_limit" in probe.note for probe in run.probes())


def test_a_layer_is_read_among_others_that_are_not(watch: Watch) -> None:
    """They share their code, and the graphs of the others know of no hook."""
    alone, model = by_regions(made(Deep)), made(Deep)
    n_alone = sum(graphs_of(alone, 6))
    torch._dynamo.reset()
    run = watch(model, probes={"layers.3.up": ["output_norm"]}, budget=None)
    assert graphs_of(by_regions(model), 6) == [n_alone, 1, 0, 0, 0, 0]
    assert differing(everything(alone), everything(model)) == []
    run.controls.settle()
    assert run.series("layers.3.up", "output_norm").step.values.tolist() == [1, 2, 3, 4, 5]


def test_as_many_ways_are_read_where_the_model_is_compiled_whole(watch: Watch) -> None:
    model = made(Deep)
    run = watch(model, probes={f"layers.{i}.up": [*SETS[i]] for i in range(len(SETS))})
    model.compile(backend="aot_eager", fullgraph=True)
    assert graphs_of(model, 3) == [1, 0, 0]
    run.controls.settle()
    assert {probe.n_values for probe in run.probes()} == {3}
