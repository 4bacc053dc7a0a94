"""Weights that are computed from others: normed, parametrized, now or in the middle of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)


class Symmetric(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.triu() + values.triu(1).T


def symmetric_square() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    return model


class Doubled(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return 2 * values


def two_on_one_weight() -> nn.Module:
    model = symmetric_square()
    parametrize.register_parametrization(model.get_submodule("0"), "weight", Doubled())
    return model


def of_both(norm_of: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    """Two layers, each with its weight computed."""
    return lambda: nn.Sequential(norm_of(nn.Linear(4, 8)), nn.ReLU(), norm_of(nn.Linear(8, 2)))


BUILDS: dict[str, Callable[[], nn.Module]] = {
    "weight_norm": of_both(parametrizations.weight_norm),
    "old weight_norm": of_both(nn.utils.weight_norm),
    "spectral_norm": of_both(parametrizations.spectral_norm),
    "old spectral_norm": of_both(nn.utils.spectral_norm),
    "orthogonal": of_both(parametrizations.orthogonal),
    "symmetric": symmetric_square,
    "two on one weight": two_on_one_weight,
}
REAL_NAMES = {
    "weight_norm": "0.parametrizations.weight.original0",
    "old weight_norm": "0.weight_g",
    "spectral_norm": "0.parametrizations.weight.original",
    "old spectral_norm": "0.weight_orig",
    "orthogonal": "0.parametrizations.weight.original",
    "symmetric": "0.parametrizations.weight.original",
    "two on one weight": "0.parametrizations.weight.original",
}


def plain_loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
    """With a validation in between, in which nothing may be advanced either."""
    optimizer = Adam(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        with diary.update(optimizer):
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(batch(9))
        model.train()
    return [optimizer]


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize("kind", BUILDS)
def test_a_computed_weight_is_recorded_under_the_names_of_what_is_trained(
    kind: str, watch: Watch
) -> None:
    """Reading the computed weight would advance a power iteration: the buffers show that none is.

    Every parameter is measured under the name that ``named_parameters`` gives it.
    """
    run, diary = play(BUILDS[kind], plain_loop, watch)
    check(run, diary)
    assert run.series(REAL_NAMES[kind], "grad_norm").step.values.tolist() == [0, 1, 2]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Norms of the weights that the first layer computes with, call by call."""
    norms: list[float] = []
    linear = nn.functional.linear

    def noted(given: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if not given.requires_grad and torch.is_grad_enabled():
            norms.append(norm_of(weight))
        return linear(given, weight, bias)

    monkeypatch.setattr(nn.functional, "linear", noted)
    return norms


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize("kind", BUILDS)
def test_the_weight_of_a_layer_is_the_one_that_its_forward_computes_with(
    kind: str, used: list[float], watch: Watch
) -> None:
    """And its gradient that of what the optimizer holds."""
    model = made(BUILDS[kind])
    run = watch(model, probes={"0": ["weight_norm", "grad_norm"]})
    optimizer, gradients = Adam(model.parameters(), lr=0.01), []
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        held = [p.grad for p in model.get_submodule("0").parameters() if p.grad is not None]
        gradients.append(norm_of(*held))
        optimizer.step()
    np.testing.assert_allclose(run.series("0", "weight_norm"), used, rtol=1e-5)
    np.testing.assert_allclose(run.series("0", "grad_norm"), gradients, rtol=1e-5)
    assert not run.status().errors


def test_a_parametrization_by_chance_is_read_without_a_random_number(watch: Watch) -> None:
    """Whatever it does in evaluation mode, the generator is as it was."""

    class Noisy(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return values + 0.01 * torch.randn_like(values)

    def noisy() -> nn.Module:
        model = mlp()
        parametrize.register_parametrization(model[0], "weight", Noisy())
        return model

    def trained(model: nn.Module) -> list[Tensor]:
        torch.manual_seed(7)
        plain_loop(model, Diary(model, alone=False))
        return [value.detach() for value in model.parameters()]

    alone, watched = made(noisy), made(noisy)
    run = watch(watched, probes={"0": ["weight_norm"]})
    assert all(map(torch.equal, trained(alone), trained(watched)))
    assert run.series("0", "weight_norm").notnull().all()


def test_a_pruned_weight_is_the_one_without_what_was_cut(used: list[float], watch: Watch) -> None:
    """Cut in the middle, and again; and once more a parameter like any other."""
    model = made(mlp)
    layer = model.get_submodule("0")
    run = watch(model, probes={"0": ["weight_norm", "grad_norm", "update_ratio"]})
    optimizer, gradients = SGD(model.parameters(), lr=0.1), []
    for step in range(8):
        if step in (2, 4):
            prune.l1_unstructured(layer, "weight", 0.5)
        if step == 6:
            prune.remove(layer, "weight")
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        gradients.append(norm_of(*(p.grad for p in layer.parameters() if p.grad is not None)))
        optimizer.step()
    np.testing.assert_allclose(run.series("0", "weight_norm"), used, rtol=1e-5)
    np.testing.assert_allclose(run.series("0", "grad_norm"), gradients, rtol=1e-5)
    assert run.series("0", "update_ratio").notnull().all()


def test_weights_at_the_end_are_those_of_the_last_state(used: list[float], watch: Watch) -> None:
    """Which no forward has used yet."""
    model = made(mlp)
    layer = model.get_submodule("0")
    prune.l1_unstructured(layer, "weight", 0.5)
    run = watch(model, probes={"0": ["weight_norm", "weight_rms"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        optimizer.step()
    run.close()
    model(batch(2))
    series = run.series("0", "weight_norm")
    assert series.values.tolist() == pytest.approx(used[: len(series)], rel=1e-5)


# ---------------------------------------------------------------- in the middle


def check_names_that_changed(
    build: Callable[[], nn.Module],
    change: Callable[[nn.Module], object],
    new: Sequence[str],
    watch: Watch,
) -> None:
    """Two steps, a change, three steps; new names are attached where the change is made."""
    watched: list[nn.Module] = []

    def begin(model: nn.Module, **options: object) -> nbp.Run:
        watched.append(model)
        runs.append(watch(model, **options))
        return runs[0]

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        for step in range(5):
            if step == 2:
                change(model)
                if new and model in watched:
                    runs[0].attach(list(new), ["weight_norm", "grad_norm", "update_ratio"])
            if step in (0, 2):
                optimizer = SGD(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            dtype = next(model.parameters()).dtype
            loss_of(model(batch(step).to(dtype))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    runs: list[nbp.Run] = []
    run, diary = play(build, loop, begin)
    check(run, diary)
    assert not run.status().errors
    for name in new:
        assert run.series(name, "update_ratio").step.values.tolist() == [2, 3, 4]


def test_a_weight_that_becomes_a_computed_one_goes_on_under_its_new_names(watch: Watch) -> None:
    """torch replaces the class of the module; its old name has a gap from then on."""
    check_names_that_changed(
        mlp,
        lambda model: parametrizations.weight_norm(model.get_submodule("0")),
        ["0.parametrizations.weight.original0", "0.parametrizations.weight.original1"],
        watch,
    )


def test_a_computed_weight_that_becomes_plain_again_goes_on_under_its_own_name(
    watch: Watch,
) -> None:
    check_names_that_changed(
        BUILDS["weight_norm"],
        lambda model: parametrize.remove_parametrizations(model.get_submodule("0"), "weight"),
        ["0.weight"],
        watch,
    )


CASTS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "double": nn.Module.double,
    "bfloat16": nn.Module.bfloat16,
    "half": nn.Module.half,
    "there and back": lambda model: model.double().float(),
}


@pytest.mark.parametrize("cast", CASTS)
def test_a_model_that_changes_its_precision_keeps_its_series(cast: str, watch: Watch) -> None:
    check_names_that_changed(mlp, CASTS[cast], [], watch)


@pytest.mark.usefixtures("swapping")
def test_a_conversion_that_swaps_the_parameters_contents_is_not_in_its_way(
    watch: Watch,
) -> None:
    """torch then keeps the parameter objects, which it refuses while anybody refers to them."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        for dtype in (torch.float32, torch.float64):
            model.zero_grad()
            model.to(dtype)
            model.load_state_dict({k: v / 2 for k, v in model.state_dict().items()})
            optimizer = SGD(model.parameters(), lr=0.1)
            for step in range(2):
                optimizer.zero_grad()
                loss_of(model(batch(step).to(dtype))).backward()
                with diary.update(optimizer):
                    optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    assert not run.status().errors
    check(run, diary)


def test_a_layer_watched_as_a_whole_keeps_its_series_when_its_weight_becomes_computed(
    used: list[float], watch: Watch
) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["weight_norm", "update_ratio", "grad_norm"]})
    for step in range(4):
        if step == 2:
            parametrizations.weight_norm(model.get_submodule("0"))
        if step in (0, 2):
            optimizer = SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        optimizer.step()
    np.testing.assert_allclose(run.series("0", "weight_norm"), used, rtol=1e-5)
    for quantity in ("update_ratio", "grad_norm"):
        assert run.series("0", quantity).step.values.tolist() == [0, 1, 2, 3]
