"""Every built-in quantity against float64 numpy on the tensors of an unwatched twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.run.attach.presets import DEFAULT
from tests.models import (
    CASES,
    Case,
    ConvNet,
    Encoder,
    Shared,
    floats,
    loss_of,
    made,
    sgd,
    train_step,
)
from tests.run.conftest import Watch
from tests.run.oracle import Twin

INPUTS = ["input_norm", "input_mean", "input_std"]
ALL = [*DEFAULT, *INPUTS]

OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "sgd with momentum": lambda model: SGD(
        model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01
    ),
    "adam": lambda model: Adam(model.parameters(), lr=0.01),
    "adamw": lambda model: AdamW(model.parameters(), lr=0.01, weight_decay=0.1),
}


REPEATABLE: dict[str, Callable[[], nn.Module]] = {
    "convolution": partial(ConvNet, inplace=False),  # autograd.grad needs the tensors unchanged
    "transformer": partial(Encoder, dropout=0.0),  # the twin would draw other numbers
}


def train_as_twin(
    run_model: nn.Module, optimizer: Optimizer, batches: list[Tensor], clip: float | None
) -> None:
    optimizer.zero_grad()
    for batch in batches:
        loss_of(run_model(batch)).backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(run_model.parameters(), clip)
    optimizer.step()


def check(run: nbp.Run, step: int, expected: dict[str, dict[str, float]]) -> int:
    """Compare every recorded value of a step; returns how many there were."""
    data = run.data.sel(step=step).load()
    n_values = 0
    for quantity in data.data_vars:
        for module in data.module.values:
            value = float(data[quantity].sel(module=module))
            path = "" if module == "(root)" else module
            wanted = expected[str(quantity)].get(path, math.nan)
            if not path and quantity in (*DEFAULT, "calls"):
                continue  # attached at "*" only, which does not mean the root
            if quantity == "calls" and not math.isnan(value):
                wanted = expected["calls"].get(path, 0.0)
            assert value == pytest.approx(wanted, rel=2e-5, abs=1e-7, nan_ok=True), (
                f"{quantity} at {module}"
            )
            n_values += not math.isnan(value)
    return n_values


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", CASES)
def test_every_quantity_equals_the_oracle(kind: str, optimizer: str, watch: Watch) -> None:
    case, optimizer_of = CASES[kind], OPTIMIZERS[optimizer]
    build = REPEATABLE.get(kind, case.build)
    twin_model, model = made(build), made(build)
    twin, mine = Twin(twin_model, optimizer_of(twin_model), clip=0.5), optimizer_of(model)
    run = watch(model, mine, probes={"*": ALL})
    for step in range(3):
        batches = [case.batch(10 * step + micro) for micro in range(1 + step % 2)]
        twin.step(batches)
        train_as_twin(model, mine, batches, clip=0.5)
        assert check(run, step, twin.expected()) > 15


def test_in_place_modules_are_read_before_they_are_overwritten(watch: Watch) -> None:
    """The gradient of an output is that of its value before the in-place operation behind it."""
    case = CASES["convolution"]
    model, plain = made(ConvNet), made(partial(ConvNet, inplace=False))
    twin, mine = Twin(plain, sgd(plain)), sgd(model)
    run = watch(model, mine, probes={"*": ALL})
    twin.step([case.batch(0)])
    train_step(model, mine, case.batch(0))
    expected = twin.expected()
    found = run.data.isel(step=0).load()
    for place in ("conv1", "norm1", "conv2", "norm2", "pool", "head"):
        for quantity in ALL:
            wanted = expected[quantity].get(place, math.nan)
            value = float(found[quantity].sel(module=place))
            assert value == pytest.approx(wanted, rel=2e-5, abs=1e-7, nan_ok=True), (
                f"{quantity} at {place}"
            )


def test_micro_batches_give_the_numbers_of_the_whole_batch(watch: Watch) -> None:
    whole, parts = made(CASES["mlp"].build), made(CASES["mlp"].build)
    batch = floats(12, 4)(0)
    runs = [watch(model, probes={"*": [*INPUTS, "output_norm", "output_std", "zero_fraction"]})
            for model in (whole, parts)]  # fmt: skip
    optimizers = [sgd(whole), sgd(parts)]
    loss_of(whole(batch)).backward()
    for part in batch.split([5, 4, 3]):
        loss_of(parts(part)).backward()
    for optimizer in optimizers:
        optimizer.step()
    one, many = (run.data.isel(step=0).load() for run in runs)
    for quantity in one.data_vars:
        ratio = 3 if quantity == "calls" else 1
        np.testing.assert_allclose(many[quantity], ratio * one[quantity], rtol=1e-5)


def test_a_module_called_twice_pools_both_calls(watch: Watch) -> None:
    model, twin_model = made(Shared), made(Shared)
    twin, optimizer = Twin(twin_model, sgd(twin_model)), sgd(model)
    run = watch(model, probes={"twice": ALL})
    batch = floats(5, 4)(0)
    twin.step([batch])
    train_step(model, optimizer, batch)
    assert len(twin.outputs["twice"]) == 2
    expected = twin.expected()
    for quantity in ALL:
        value = float(run.series("twice", quantity)[0])
        assert value == pytest.approx(expected[quantity]["twice"], rel=1e-5)


def test_a_parameter_is_measured_under_its_own_path(watch: Watch) -> None:
    model = made(CASES["mlp"].build)
    optimizer, bias = sgd(model), model.get_parameter("0.bias")
    run = watch(model, probes={"0.bias": ["weight_norm", "grad_norm", "update_ratio"]})
    before = bias.detach().double().numpy().copy()
    train_step(model, optimizer, CASES["mlp"].batch(0))
    assert bias.grad is not None
    after, gradient = bias.detach().double().numpy(), bias.grad.double().numpy()
    size = np.linalg.norm(before)
    found = run.data.sel(module="0.bias").isel(step=0).load()
    assert float(found.weight_norm) == pytest.approx(size, rel=1e-6)
    assert float(found.grad_norm) == pytest.approx(np.linalg.norm(gradient), rel=1e-6)
    assert float(found.update_ratio) == pytest.approx(
        np.linalg.norm(after - before) / size, rel=1e-5
    )


def test_a_module_and_its_own_weight_agree(watch: Watch) -> None:
    model = made(CASES["mlp"].build)
    optimizer = sgd(model)
    run = watch(model, probes={"0": ["update_ratio", "weight_norm"]})
    run.attach("0.weight", ["update_ratio", "weight_norm"])
    for step in range(3):
        train_step(model, optimizer, CASES["mlp"].batch(step))
    both = run.data.sel(module=["0", "0.weight"]).load()
    for quantity in ("update_ratio", "weight_norm"):
        np.testing.assert_array_equal(both[quantity][0], both[quantity][1])


@pytest.mark.parametrize("layout", ["channels_last", "permuted", "expanded"])
def test_memory_layout_does_not_change_a_value(layout: str, watch: Watch) -> None:
    batch = floats(4, 1, 6, 6)(0).repeat(1, 2, 1, 1)
    given = {
        "channels_last": batch.to(memory_format=torch.channels_last),
        "permuted": batch.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2),
        "expanded": batch[:1].expand(4, 2, 6, 6),
    }[layout]
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU())
    if layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = sgd(model)
    run = watch(model, probes={"0": INPUTS, "1": ["output_mean", "output_std", "zero_fraction"]})
    train_step(model, optimizer, given)
    values = given.double().numpy()
    found = run.data.sel(module="0").isel(step=0).load()
    assert float(found.input_norm) == pytest.approx(np.linalg.norm(values), rel=1e-5)
    assert float(found.input_mean) == pytest.approx(values.mean(), rel=1e-4)
    assert float(found.input_std) == pytest.approx(values.std(ddof=1), rel=1e-5)


def test_half_precision_values_are_summed_in_single_or_wider(watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(64, 64)).bfloat16()
    optimizer = sgd(model, lr=1.0)
    run = watch(model, optimizer)
    weight = model.get_parameter("0.weight")
    before = weight.detach().double().numpy().copy()
    batch = (100 * torch.randn(32, 64)).bfloat16()
    output = model(batch)
    output.float().square().mean().backward()
    optimizer.step()
    kept = output.detach().double().numpy()
    found = run.data.sel(module="0").isel(step=0).load()
    assert float(found.output_norm) == pytest.approx(np.linalg.norm(kept), rel=1e-5)
    assert float(found.output_std) == pytest.approx(kept.std(ddof=1), rel=1e-5)
    after = weight.detach().double().numpy()
    ratio = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert float(found.update_ratio) == pytest.approx(ratio, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.complex64])
def test_other_floats_are_measured_too(dtype: torch.dtype, watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(8, 8)).to(dtype)
    run = watch(model)
    optimizer = sgd(model)
    output = model(torch.randn(4, 8).to(dtype))
    output.abs().mean().backward()
    optimizer.step()
    kept = np.abs(output.detach().to(torch.complex128).numpy())
    assert float(run.series("0", "output_norm")[0]) == pytest.approx(np.linalg.norm(kept), rel=1e-3)


def test_an_empty_batch_adds_nothing_and_breaks_nothing(watch: Watch) -> None:
    model = made(CASES["mlp"].build)
    optimizer = sgd(model)
    run = watch(model, optimizer)
    full, empty = floats(5, 4)(0), torch.empty(0, 4)
    optimizer.zero_grad()
    loss_of(model(full)).backward()
    model(empty).sum().backward()
    optimizer.step()
    model(empty).sum().backward()
    optimizer.step()
    data = run.data.sel(module="0").load()
    assert not run.status().errors
    assert math.isfinite(data.output_mean[0]), "the empty part adds nothing"
    assert float(data.output_norm[1]) == 0.0
    assert math.isnan(data.output_mean[1])


def test_nan_and_infinity_are_shown_and_counted(watch: Watch) -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(4, 2))
    run = watch(model, probes={"0": ["output_norm", "output_mean", "output_std"]})
    run.attach("0", ["nonfinite_fraction", "zero_fraction"])
    optimizer = sgd(model)
    train_step(model, optimizer, torch.tensor([[math.nan, 0.0, math.inf, 1.0]]))
    found = run.data.sel(module="0").isel(step=0).load()
    assert float(found.nonfinite_fraction) == 0.5
    assert float(found.zero_fraction) == 0.25
    assert not np.isfinite([found.output_norm, found.output_mean, found.output_std]).any()
    assert len(run.series("0", "output_mean")) == 1, "a NaN that was measured is a measurement"
    assert not run.status().errors


def test_squares_that_overflow_give_the_right_norm(watch: Watch) -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(4, 2))
    run = watch(model, probes={"0": ["output_norm", "output_mean", "output_std"]})
    optimizer = sgd(model)
    batch = torch.tensor([[1e30, -2e30, 3e30, 0.0]])
    train_step(model, optimizer, batch)
    found = run.data.sel(module="0").isel(step=0).load()
    wide = batch.double().numpy()
    assert float(found.output_norm) == pytest.approx(np.linalg.norm(wide), rel=1e-6)
    assert float(found.output_std) == pytest.approx(wide.std(ddof=1), rel=1e-6)


def test_a_value_beyond_single_precision_is_infinite_and_no_warning(watch: Watch) -> None:
    @nbp.quantity(name="test_huge")
    def huge(output: Tensor) -> float:
        """Far more than float32 holds."""
        return 1e200

    model = made(CASES["mlp"].build)
    run = watch(model, probes={"0": [huge, "output_norm"]})
    train_step(model, sgd(model), CASES["mlp"].batch(0))
    run.controls.settle()
    assert float(run.series("0", "test_huge")[0]) == math.inf
    assert len(run.series("0", "output_norm")) == 1
    assert run.status().problem == ""


def test_a_large_mean_does_not_drown_a_small_spread(watch: Watch) -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(100, 2))
    run = watch(model, probes={"0": ["output_std"]})
    batch = 1000 + 0.01 * torch.randn(50, 100)
    train_step(model, sgd(model), batch)
    wanted = batch.double().numpy().std(ddof=1)
    assert float(run.series("0", "output_std")[0]) == pytest.approx(wanted, rel=1e-3)


def test_one_element_has_no_standard_deviation(watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    run = watch(model)
    train_step(model, sgd(model), torch.ones(1, 1))
    assert math.isnan(run.series("0", "output_std")[0])


def test_frozen_weights_have_no_gradient_and_no_update(watch: Watch) -> None:
    model = made(CASES["mlp"].build)
    model.get_submodule("0").requires_grad_(False)
    run = watch(model)
    train_step(model, sgd(model), CASES["mlp"].batch(0))
    data = run.data.isel(step=0).load()
    assert math.isnan(data.grad_norm.sel(module="0"))
    assert math.isnan(data.output_grad_norm.sel(module="0"))
    assert float(data.grad_norm.sel(module="2")) > 0
    assert float(data.weight_norm.sel(module="0")) > 0


def test_sparse_gradients_are_coalesced_first(watch: Watch) -> None:
    model = nn.Sequential(nn.Embedding(7, 4, sparse=True))
    run = watch(model, probes={"0": ["grad_norm"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    model(torch.tensor([[1, 1, 2]])).square().sum().backward()
    weight = model.get_parameter("0.weight")
    assert weight.grad is not None
    wanted = np.linalg.norm(weight.grad.to_dense().double().numpy())
    optimizer.step()
    assert float(run.series("0", "grad_norm")[0]) == pytest.approx(wanted, rel=1e-6)


def test_the_weight_is_the_one_the_forward_used(watch: Watch) -> None:
    model = made(CASES["mlp"].build)
    optimizer = sgd(model)
    run = watch(model, probes={"0": ["weight_norm"]})
    used = []
    for step in range(4):
        used.append(np.linalg.norm(model.get_parameter("0.weight").detach().double().numpy()))
        train_step(model, optimizer, CASES["mlp"].batch(step))
    np.testing.assert_allclose(run.series("0", "weight_norm"), used, rtol=1e-6)
    assert len(set(used)) == 4


def test_values_of_several_calls_combine_as_the_quantity_says(watch: Watch) -> None:
    combines = {"mean": 2.0, "sum": 6.0, "max": 3.0, "min": 1.0, "last": 3.0, "rss": 14**0.5}
    made_of = {
        name: nbp.quantity(name=f"test_combine_{name}", combine=name)(  # type: ignore[call-overload]
            lambda output: output.detach().amax()
        )
        for name in combines
    }
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1))
    run = watch(model, probes={"0": list(made_of.values())})
    optimizer = sgd(model)
    for value in (1.0, 2.0, 3.0):
        model(torch.tensor([[value]])).sum().backward()
    optimizer.step()
    found = run.data.sel(module="0").isel(step=0).load()
    for name, wanted in combines.items():
        assert float(found[f"test_combine_{name}"]) == pytest.approx(wanted, rel=1e-6)


def test_default_probes_sit_on_weighted_and_activation_modules(watch: Watch) -> None:
    run = watch(made(ConvNet))
    places = dict.fromkeys(probe.module for probe in run.probes())
    assert list(places) == ["conv1", "norm1", "conv2", "norm2", "relu", "head"]
    at_relu = [probe.quantity for probe in run.probes() if probe.module == "relu"]
    every = (*DEFAULT, *NOW_AND_THEN)
    assert at_relu == [name for name in every if name not in WEIGHTS]
    assert [p.quantity for p in run.probes() if p.module == "head"] == list(every)
    assert {p.quantity: p.schedule for p in run.probes() if p.quantity in NOW_AND_THEN} == (
        NOW_AND_THEN
    )


WEIGHTS = ("weight_norm", "grad_norm", "update_ratio", "grad_rms")
NOW_AND_THEN = {"grad_rms": "every(5)", "silent_input_fraction": "every(10)"}


def test_a_root_that_is_a_layer_is_watched_itself(watch: Watch) -> None:
    model = nn.Linear(4, 2)
    run = watch(model)
    batch = floats(5, 4)(0)
    with torch.no_grad():
        wanted = np.linalg.norm(model(batch).double().numpy())
    train_step(model, sgd(model), batch)
    assert float(run.series("", "output_norm")[0]) == pytest.approx(wanted, rel=1e-6)
    assert float(run.data.output_norm.sel(module="(root)")[0]) == pytest.approx(wanted, rel=1e-6)


def test_spectral_norm_is_not_disturbed_by_being_measured(watch: Watch) -> None:
    case = Case(lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))),
                floats(5, 4))  # fmt: skip
    plain, model = made(case.build), made(case.build)
    watch(model)
    for each in (plain, model):
        optimizer = sgd(each)
        for step in range(3):
            train_step(each, optimizer, case.batch(step))
    pairs = zip(plain.state_dict().values(), model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
