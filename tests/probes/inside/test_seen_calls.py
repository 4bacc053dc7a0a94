"""Calls of compiled models are seen where they begin, and hooks alone have nothing compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

import notebook_probe as nbp
from tests.models import loss_of, made, sgd, train_step
from tests.probes.inside.compiled_models import (
    Small,
    batch,
    n_breaks,
    n_graphs,
    told_by_twin,
    trained,
    whole,
)
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

PLACES = ("embed", "norm", "head")


class Recurrent(nn.Module):
    """Dynamo compiles no forward with an LSTM, and tries each call that is made from there."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Linear(4, 8), nn.LSTM(8, 8)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.lstm(self.embed(x))[0]))


def steps_of(run: nbp.Run, place: str, quantity: str = "output_norm") -> list[int]:
    run.controls.settle()
    return run.series(place, quantity).step.values.tolist()


def test_layers_of_torch_are_not_compiled_one_by_one_because_they_have_hooks(watch: Watch) -> None:
    alone, model = made(Recurrent), made(Recurrent)
    left = trained(alone, torch.compile(alone, backend="aot_eager"), range(12))
    torch._dynamo.reset()
    wanted = told_by_twin(model, PLACES, 12)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm"]}, budget=None)
    before = n_graphs()
    assert trained(model, torch.compile(model, backend="aot_eager"), range(12)) == left
    assert differing(everything(alone), everything(model)) == []
    assert n_graphs() == before, "none is compiled without hooks either"
    run.controls.settle()
    for place in PLACES:
        found = run.series(place, "output_norm")
        np.testing.assert_allclose(found, wanted[place, "output_norm"], rtol=1e-5)


def test_a_layer_with_a_hook_of_the_user_s_is_compiled_as_without_watching(watch: Watch) -> None:
    alone, model = made(Recurrent), made(Recurrent)
    for one in (alone, model):
        one.norm.register_forward_hook(lambda *_: None)
    before = n_graphs()
    trained(alone, torch.compile(alone, backend="aot_eager"), range(2))
    n_alone = n_graphs() - before
    assert n_alone > 0
    torch._dynamo.reset()
    watch(model, probes={"norm": ["output_norm"]}, budget=None)
    before = n_graphs()
    trained(model, torch.compile(model, backend="aot_eager"), range(2))
    assert n_graphs() - before == n_alone


def test_what_cannot_be_read_in_a_graph_is_compiled_once_more_and_not_at_each_step(
    watch: Watch,
) -> None:
    model = made(Small)
    watch(model, probes={"*": ["output_norm", "output_grad_norm"]}, budget=None)
    mapped = torch.func.vmap(model, randomness="different")
    called = torch.compile(lambda x: mapped(x), backend="aot_eager")
    trained(model, called, range(5))
    n = n_breaks(), counters["frames"]["total"]
    trained(model, called, range(5, 12))
    assert (n_breaks(), counters["frames"]["total"]) == n


def test_a_compiled_function_that_calls_the_model_is_read_at_every_step(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes="default", budget=None)
    loss = torch.compile(lambda x: loss_of(model(x)), backend="aot_eager")
    optimizer = sgd(model)
    for step in range(5):
        optimizer.zero_grad()
        loss(batch(step)).backward()
        optimizer.step()
    assert steps_of(run, "first") == steps_of(run, "first", "output_grad_norm") == [*range(5)]


def test_graphs_of_an_unwatched_twin_take_no_reading_from_the_model(watch: Watch) -> None:
    model, twin = made(Small), made(Small)
    called, of_twin, optimizer = whole(model), whole(twin), sgd(model)
    train_step(called, optimizer, batch(0))
    run = watch(model, probes={"first": ["output_norm"]}, budget=None)
    for step in range(1, 6):
        train_step(called, optimizer, batch(step))
        with torch.no_grad():
            of_twin(batch(step)[:step])  # compiled for other sizes, long after the model's graphs
    assert steps_of(run, "first") == [0, 1, 2, 3, 4]


def wrapped(model: nn.Module) -> Any:
    return whole(model)


def in_place(model: nn.Module) -> Any:
    model.compile(backend="aot_eager", fullgraph=True)
    return model


@pytest.mark.parametrize("way", [wrapped, in_place])
def test_the_model_itself_is_measured(way: Callable[[nn.Module], Any], watch: Watch) -> None:
    model = made(Small)
    quantities = ["input_norm", "output_norm", "output_grad_norm", "samples_per_second"]
    run = watch(model, probes={"(root)": quantities}, budget=None)
    inner = made(Small)
    expected = [inner(batch(0)).norm().item(), batch(0).norm().item()]
    trained(model, way(model), range(4))
    assert all(steps_of(run, "(root)", quantity) == [*range(4)] for quantity in quantities)
    found = [run.series("(root)", one).values[0] for one in ("output_norm", "input_norm")]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_evaluation_is_one_and_opens_no_step(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm"]}, budget=None)
    run.attach("first", "output_mean", phase="eval")
    called, optimizer = whole(model), sgd(model)
    for step in range(3):
        train_step(called, optimizer, batch(step))
    model.eval()
    with torch.no_grad():
        called(batch(7))
    model.train()
    train_step(called, optimizer, batch(3))
    assert steps_of(run, "first") == [0, 1, 2, 3]


def test_numbers_that_are_not_finite_are_found_in_the_batch(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes="default", budget=None)
    called, optimizer = whole(model), sgd(model)
    for step in range(4):
        x = batch(step)
        if step == 3:
            x[0, 0] = math.nan
        train_step(called, optimizer, x)
    run.controls.settle()
    assert {"nonfinite_batch", "nonfinite_loss"} <= {alert.rule for alert in run.alerts}


def test_where_the_call_of_the_model_itself_is_compiled_the_note_says_so(watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    run = watch(model, probes={"(root)": ["output_norm"], "0": ["output_norm"]}, budget=None)
    trained(model, whole(model), range(3))
    assert steps_of(run, "0") == [0, 1, 2]
    notes = {probe.module: probe.note for probe in run.probes()}
    assert "nn.Sequential" in notes["(root)"]
    assert notes["0"] == ""


ASKED = {"first": ["output_norm", "output_quantiles"], "last": ["grad_norm"]}


@pytest.mark.parametrize(("probes", "kind"), [("alerts", "remark"), (ASKED, "alert")])
def test_a_preset_is_not_blamed_for_what_no_graph_can_measure(
    probes: Any, kind: str, watch: Watch
) -> None:
    model = made(Small)
    run = watch(model, probes=probes, budget=None)
    called = whole(model)
    for start in (0, 5):  # how many due steps have passed is counted from the first look on
        trained(model, called, range(start, start + 5))
        found = {"alert": run.alerts.of("stale_probe"), "remark": run.remarks.of("stale_probe")}
    assert [one for one, some in found.items() if some] == [kind]
