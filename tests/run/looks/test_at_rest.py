"""A look while nothing trains is computed from the last inputs, if they exist unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.run.attach.requests import LookAt, Ticket
from notebook_probe.run.health import meter
from tests.run.conftest import Watch


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.0), nn.Tanh(), nn.Linear(5, 2))


def train(model: nn.Module, inputs: Tensor, n_steps: int = 3) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(n_steps):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()


@pytest.fixture
def model() -> nn.Sequential:
    return network()


def shown(watch: Watch, model: nn.Module) -> nbp.Run:
    """Watch with a panel that shows the run."""
    run = watch(model, probes=[])
    run.controls.each_boundary(lambda: None)
    return run


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that has ended is seconds ago at once, so that the run is at rest."""
    monkeypatch.setattr(meter.Meter, "is_moving", False)


def click(run: nbp.Run, module: str) -> Ticket:
    """Look at a module as the panel does, after the cell has ended."""
    return run.controls.put(LookAt(module, soon=True))


def test_the_last_inputs_give_what_the_layer_returns_now(
    watch: Watch, model: nn.Sequential
) -> None:
    run, inputs = shown(watch, model), torch.randn(12, 6)
    train(model, inputs)
    before = [one.detach().clone() for one in model.parameters()]
    random, gradients = torch.get_rng_state(), [one.grad for one in model.parameters()]
    ticket = click(run, "3")
    assert ticket.state == "applied"
    (look,) = run.looks
    assert (look.module, look.step) == ("3", 3)
    assert look.why == "computed at rest from the inputs of step 2, without gradients"
    assert ticket.text == f"looked at 3, {look.why}"
    assert not look.is_batch
    seen, last = model[:3](inputs), model[3]
    assert isinstance(last, nn.Linear)
    np.testing.assert_array_equal(look.data.input, seen[:8].detach().numpy())
    np.testing.assert_array_equal(look.data.output, last(seen)[:8].detach().numpy())
    np.testing.assert_array_equal(look.data.weight, last.weight.detach().numpy())
    assert tuple(look.data.output.attrs["shape"]) == (12, 2)
    assert torch.equal(random, torch.get_rng_state())
    for one, was, gradient in zip(model.parameters(), before, gradients, strict=True):
        assert torch.equal(one, was)
        assert one.grad is gradient
    assert not last._forward_hooks
    assert click(run, "3").state == "applied"
    assert len(run.looks) == 1, "nothing has changed since"


def test_the_model_itself_is_looked_at_with_its_inputs(watch: Watch, model: nn.Sequential) -> None:
    run, inputs = shown(watch, model), torch.randn(4, 6)
    train(model, inputs)
    assert click(run, "(root)").state == "applied"
    (look,) = run.looks
    np.testing.assert_array_equal(look.data.input, inputs.numpy())


def test_inputs_that_are_gone_are_waited_for(watch: Watch, model: nn.Sequential) -> None:
    run = shown(watch, model)
    train(model, torch.randn(4, 6))
    ticket = click(run, "3")
    assert (run.looks, ticket.state) == ([], "queued")
    train(model, torch.randn(4, 6), n_steps=1)
    run.controls.settle()
    assert [(one.module, one.step, one.why) for one in run.looks] == [("3", 3, "")]


def test_inputs_that_were_changed_in_place_are_waited_for(
    watch: Watch, model: nn.Sequential
) -> None:
    run, inputs = shown(watch, model), torch.randn(4, 6)
    train(model, inputs)
    inputs.mul_(2)
    click(run, "3")
    assert run.looks == []


def test_without_a_panel_no_step_notes_its_inputs(watch: Watch, model: nn.Sequential) -> None:
    run, inputs = watch(model, probes=[]), torch.randn(4, 6)
    train(model, inputs)
    click(run, "3")
    assert run.looks == []
    assert run._parts.observer.calls.latest is None


def test_a_panel_that_is_closed_ends_the_notes(watch: Watch, model: nn.Sequential) -> None:
    run, inputs = watch(model, probes=[]), torch.randn(4, 6)
    close = run.controls.each_boundary(lambda: None)
    train(model, inputs, n_steps=1)
    close()
    train(model, inputs)
    assert run._parts.observer.calls.latest is None


def test_a_look_in_python_is_of_the_next_step(watch: Watch, model: nn.Sequential) -> None:
    run, inputs = shown(watch, model), torch.randn(4, 6)
    train(model, inputs)
    run.controls.settle()
    look = run.look("3")
    assert run.looks == []
    train(model, inputs, n_steps=1)
    run.controls.settle()
    assert "grad" in look.data


def test_a_model_that_fails_at_rest_is_looked_at_in_the_next_step(watch: Watch) -> None:
    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.n_calls = nn.Linear(6, 2), 0

        def forward(self, x: Tensor) -> Tensor:
            self.n_calls += 1
            if self.n_calls > 3:
                raise RuntimeError("three calls are enough")
            out: Tensor = self.linear(x)
            return out

    model, inputs = Once(), torch.randn(4, 6)
    run = shown(watch, model)
    train(model, inputs)
    assert click(run, "linear").state == "queued"
    assert (run.looks, model.n_calls) == ([], 3)
