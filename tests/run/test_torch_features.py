"""What else people do with torch while a model is watched."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from notebook_probe.errors import NotApplicableError
from tests.models import (
    Encoder,
    Heads,
    floats,
    loss_of,
    made,
    mlp,
    sgd,
    train,
    train_step,
    words,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)


# ---------------------------------------------------------------- precision


@pytest.mark.parametrize("probed", [False, True])
def test_autocast_trains_the_same(probed: bool, watch: Watch) -> None:
    def trained(watched: bool) -> list[Tensor]:
        model = made(mlp)
        optimizer = sgd(model)
        run = watch(model) if watched else None
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                output = model(batch(step))
            output.float().square().mean().backward()
            optimizer.step()
        if run is not None:
            assert np.isfinite(run.data.output_norm.sel(module="0")).all()
            assert not run.status().errors
        return [value.detach().clone() for value in model.parameters()]

    plain, again = trained(False), trained(probed)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_a_gradient_scaler_leaves_gradients_unscaled_and_skips_what_is_skipped(
    watch: Watch,
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    run = watch(model, probes={"0": ["grad_norm", "input_norm"]})
    gradients = []
    for step in range(3):
        optimizer.zero_grad()
        given = batch(step) * (math.inf if step == 1 else 1.0)
        scaler.scale(model(given).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        gradients.append(norm_of(*(p.grad for p in model.get_submodule("0").parameters()
                                   if p.grad is not None)))  # fmt: skip
    assert run.data.step.values.tolist() == [0, 1], "the overflow made no step"
    found = run.series("0", "grad_norm").values
    assert found[0] == pytest.approx(gradients[0], rel=1e-5)
    assert found[1] == pytest.approx(gradients[2], rel=1e-5)
    wanted = [norm_of(batch(0)), norm_of(batch(2))]
    assert run.series("0", "input_norm").values == pytest.approx(wanted, rel=1e-5)
    assert run.series("", "discarded_backwards").values.tolist() == [1], "and was cleared"


# ---------------------------------------------------------------- modules that change


def test_lazy_modules_are_measured_from_their_first_step(watch: Watch) -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
    run = watch(model)
    optimizer = None
    for step in range(3):
        output = model(batch(step))
        optimizer = optimizer or sgd(model)
        optimizer.zero_grad()
        loss_of(output).backward()
        optimizer.step()
    assert not run.status().errors
    assert run.series("0", "weight_norm").step.values.tolist() == [0, 1, 2]
    assert run.series("0", "update_ratio").step.values.tolist() == [0, 1, 2]
    assert run.series("2", "output_norm").step.values.tolist() == [0, 1, 2]


def test_a_model_that_changes_its_precision_goes_on(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(2))
    model.double()
    train(model, sgd(model), lambda step: batch(step).double(), range(2))
    assert not run.status().errors
    assert run.series("0", "update_ratio").step.values.tolist() == [0, 1, 2, 3]


def test_weights_that_are_replaced_are_followed(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    layer = model.get_submodule("0")
    layer.weight = nn.Parameter(torch.full((8, 4), 2.0))
    train_step(model, sgd(model), batch(1))
    assert float(run.series("0", "weight_norm")[1]) == pytest.approx(2 * math.sqrt(32), rel=1e-6)
    assert run.series("0", "grad_norm").step.values.tolist() == [0, 1]


def test_a_parametrization_may_come_in_the_middle(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    nn.utils.parametrizations.weight_norm(model.get_submodule("0"))
    for step in (1, 2):
        train_step(model, sgd(model), batch(step))
    assert not run.status().errors
    assert run.series("0", "output_norm").step.values.tolist() == [0, 1, 2]
    assert run.series("2", "weight_norm").step.values.tolist() == [0, 1, 2]


def test_entries_of_a_parameter_list_have_names(watch: Watch) -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scales[0] * self.scales[1]

    model = made(Listed)
    run = watch(model, probes={"scales.1": ["weight_norm", "grad_norm", "update_ratio"]})
    train_step(model, sgd(model), batch(0))
    assert float(run.series("scales.1", "weight_norm")[0]) == pytest.approx(2.0)
    assert len(run.series("scales.1", "update_ratio")) == 1


def test_someone_clears_the_hooks_and_training_goes_on(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    train(model, sgd(model), batch, range(2))
    assert len(run.series("0", "output_norm")) == 1
    assert len(run.series("0", "weight_norm")) >= 2
    run.close()


# ---------------------------------------------------------------- transforms and compilers


@pytest.mark.filterwarnings("ignore:.torch.jit.trace.* is deprecated")
def test_transforms_of_a_watched_model_work_and_are_not_measured(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    run.attach("*", "input_norm")
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    values = {name: value.detach() for name, value in model.named_parameters()}
    called = torch.func.functional_call(model, values, (batch(1),))
    traced = torch.jit.trace(model, batch(1), check_trace=False)
    stacked = torch.vmap(lambda x: torch.func.functional_call(model, values, (x,)))(batch(1))
    gradients = torch.func.grad(lambda v: torch.func.functional_call(model, v, (batch(1),)).sum())(
        values
    )
    assert torch.allclose(called, stacked, atol=1e-6)
    assert torch.equal(called, traced(batch(1)))
    assert set(gradients) == set(values)
    train_step(model, optimizer, batch(2))
    assert not run.status().errors
    assert run.data.step.values.tolist() == [0, 1]


def test_a_compiled_model_trains_the_same_and_says_what_cannot_be_seen(watch: Watch) -> None:
    plain, model = made(mlp), made(mlp)
    run = watch(model)
    compiled = torch.compile(model, backend="eager")
    for called, optimizer in ((plain, sgd(plain)), (compiled, sgd(model))):
        for step in range(3):
            optimizer.zero_grad()
            loss_of(called(batch(step))).backward()
            optimizer.step()
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True)
    )
    assert not run.status().errors
    for quantity in ("weight_norm", "grad_norm", "update_ratio"):
        assert run.series("0", quantity).step.values.tolist() == [0, 1, 2]


def test_evaluation_works_where_torch_would_take_its_fast_path(watch: Watch) -> None:
    model = made(Encoder)
    run = watch(model)
    train_step(model, sgd(model), words(0))
    model.eval()
    with torch.no_grad():
        model(words(1))
    assert run.data.step.values.tolist() == [0]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_a_script_module_inside_is_left_alone(watch: Watch) -> None:
    scripted = torch.jit.script(nn.Linear(8, 2))
    model = nn.Sequential(nn.Linear(4, 8), scripted)
    run = watch(model)
    train(model, sgd(model), batch, range(2))
    assert run.series("0", "output_norm").step.values.tolist() == [0, 1]
    assert not run.status().problem


def test_functional_use_of_a_weight_is_a_gap_that_says_so(watch: Watch) -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(x, self.fc.weight, self.fc.bias)

    model = made(Functional)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert len(run.series("fc", "grad_norm")) == 1
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert notes["output_norm"] == "not called by any training forward yet"
    assert notes["weight_norm"] == ""


def test_an_ema_copy_beside_the_model_is_silent(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        average.update_parameters(model)
        average(batch(step))
    assert run.data.step.values.tolist() == [0, 1, 2]
    alone = made(mlp)
    reference = watch(alone)
    train(alone, sgd(alone), batch, range(3))
    for quantity in run.data.data_vars:
        np.testing.assert_array_equal(run.data[quantity], reference.data[quantity])


def test_user_hooks_keep_working(watch: Watch) -> None:
    model = made(mlp)
    layer = model.get_submodule("0")
    layer.register_forward_hook(lambda module, args, output: output * 2)
    run = watch(model, probes={"0": ["output_norm"]})
    with torch.no_grad():
        wanted = norm_of(2 * nn.functional.linear(batch(0), layer.weight, layer.bias))  # type: ignore[arg-type]
    train_step(model, sgd(model), batch(0))
    assert float(run.series("0", "output_norm")[0]) == pytest.approx(wanted, rel=1e-6)


def test_dict_outputs_have_gradients_too(watch: Watch) -> None:
    model = made(Heads)
    run = watch(model, probes={"": ["output_grad_norm", "output_norm"]})
    train_step(model, sgd(model), batch(0))
    assert float(run.series("", "output_grad_norm")[0]) > 0


def test_what_a_quantity_does_to_its_tensor_does_not_reach_training(watch: Watch) -> None:
    def rude(output: Tensor) -> Tensor:
        return output.abs().amax().requires_grad_()

    plain, model = made(mlp), made(mlp)
    run = watch(model, probes={"*": [rude]})
    for each in (plain, model):
        train(each, sgd(each), batch, range(2))
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True)
    )
    assert not run.status().errors


def test_a_place_that_is_no_more_is_a_gap(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    model[2] = nn.Linear(8, 2)
    train(model, sgd(model), batch, range(2))
    assert run.data.step.values.tolist() == [0, 1, 2]
    assert run.series("0", "output_norm").step.values.tolist() == [0, 1, 2]
    assert not run.status().problem
    with pytest.raises(NotApplicableError):
        run.attach("1", "weight_norm")
