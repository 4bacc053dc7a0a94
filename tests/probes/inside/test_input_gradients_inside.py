"""Gradients of inputs in compiled graphs: the module's share, against a twin in float64."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from tests.models import floats, loss_of, made, sgd
from tests.probes.inside.compiled_models import n_breaks, n_graphs, whole
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

N_STEPS = 2
batch = floats(5, 4)


class Share(nn.Module):
    """Sends its input a gradient along several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.query(x) * self.key(x)) + x.square()


class Residual(nn.Module):
    """Has inputs with several consumers, one without a gradient, and one in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.share, self.same = nn.Linear(4, 4), Share(), nn.Identity()
        self.relu, self.last = nn.ReLU(inplace=True), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(self.relu(x + self.share(x) + self.same(x * 2)))


class Checkpointing(Residual):
    recomputes = True

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        share = checkpoint(self.share, x, use_reentrant=False) if self.recomputes else self.share(x)
        return self.last(self.relu(x + share))


PLACES = ("share", "share.query", "share.norm", "relu", "last")


def shares(model: nn.Module, places: tuple[str, ...]) -> dict[str, list[float]]:
    """The norms of what modules send to their inputs, which are made leaves of their calls."""
    twin = copy.deepcopy(model).double()
    optimizer = sgd(twin)
    found: dict[str, list[float]] = {place: [] for place in places}
    given: dict[str, Tensor] = {}

    def separate(place: str) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            given[place] = args[0].clone()
            given[place].retain_grad()
            # A tensor that nothing else reads: what comes to it is the module's share.
            return (given[place].clone(),) if place == "relu" else (given[place],)

        return hook

    for place in places:
        twin.get_submodule(place).register_forward_pre_hook(separate(place))
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss_of(twin(batch(step).double())).backward()
        optimizer.step()
        for place in places:
            gradient = given[place].grad
            assert gradient is not None
            found[place].append(float(np.linalg.norm(gradient.numpy())))
    return found


def trained(model: nn.Module, called: Any) -> list[float]:
    optimizer, losses = sgd(model), []
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss = loss_of(called(batch(step)))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def check(run: nbp.Run, wanted: dict[str, list[float]]) -> None:
    run.controls.settle()
    assert not run.status().errors
    for place, values in wanted.items():
        series = run.series(place, "input_grad_norm")
        assert series.step.values.tolist() == [*range(N_STEPS)], place
        np.testing.assert_allclose(series, values, rtol=2e-5, err_msg=place)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_share_that_a_module_sends_is_that_of_a_twin(backend: str, watch: Watch) -> None:
    model, alone = made(Residual), made(Residual)
    wanted = shares(model, PLACES)
    left = trained(alone, whole(alone, backend))
    run = watch(model, probes={PLACES: ["input_grad_norm"]}, budget=None)
    before = n_graphs()
    found = trained(model, whole(model, backend))
    check(run, wanted)
    assert n_graphs() - before == 1
    assert n_breaks() == 0
    if backend == "inductor":
        # It computes a share and adds it to another in one operation, unless the share is read.
        np.testing.assert_allclose(found, left, rtol=1e-6)
    else:
        assert found == left
        assert differing(everything(alone), everything(model)) == []


def test_they_are_read_with_all_else_of_a_call(watch: Watch) -> None:
    model = made(Residual)
    wanted = shares(model, PLACES)
    names = ["input_grad_norm", "input_norm", "output_norm", "output_grad_norm"]
    run = watch(model, probes={PLACES: names}, budget=None)
    trained(model, whole(model))
    check(run, wanted)
    for name in names:
        assert run.series("share", name).size == N_STEPS


def test_an_input_that_is_returned_is_sent_what_comes_to_the_output(watch: Watch) -> None:
    model = made(Residual)
    run = watch(model, probes={"same": ["input_grad_norm", "output_grad_norm"]}, budget=None)
    trained(model, whole(model))
    run.controls.settle()
    np.testing.assert_array_equal(
        run.series("same", "input_grad_norm"), run.series("same", "output_grad_norm")
    )


def test_a_checkpoint_sends_its_input_the_same(watch: Watch) -> None:
    model = made(Checkpointing)
    places = ("share.query", "last")
    model.recomputes = False
    wanted = shares(model, places)
    model.recomputes = True
    run = watch(model, probes={places: ["input_grad_norm"]}, budget=None)
    trained(model, whole(model))
    check(run, wanted)


def test_an_input_that_needs_no_gradient_gives_no_value(watch: Watch) -> None:
    model = made(Residual)
    run = watch(model, probes={"first": ["input_grad_norm", "output_norm"]}, budget=None)
    trained(model, whole(model))
    run.controls.settle()
    notes = {probe.quantity: probe for probe in run.probes()}
    assert notes["input_grad_norm"].n_values == 0
    assert notes["input_grad_norm"].note
    assert notes["output_norm"].n_values == N_STEPS


def test_a_layer_compiled_alone_sends_its_input_the_same(watch: Watch) -> None:
    model = made(Residual)
    wanted = shares(model, ("share", "share.query", "last"))
    run = watch(model, probes={(*wanted,): ["input_grad_norm"]}, budget=None)
    model.share.compile(backend="aot_eager", fullgraph=True)
    trained(model, model)
    check(run, wanted)
