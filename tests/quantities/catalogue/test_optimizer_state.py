"""Quantities of optimizers and of many layers, against float64 by hand from an unwatched twin."""

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
from torch.optim import SGD, AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.errors import UnreadableError
from notebook_probe.quantities import as_quantity

Array: TypeAlias = npt.NDArray[np.float64]

STEPS, CLIP = 4, 0.05


class SeveralKinds(nn.Module):
    """Layers of several kinds, one of them in a container, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.body = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 8))
        self.frozen = nn.Linear(8, 8).requires_grad_(requires_grad=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(self.norm(self.conv(x)).flatten(1))
        found: Tensor = self.head(self.frozen(hidden))
        return found


def adamw(model: nn.Module) -> Optimizer:
    """Two groups with options of their own."""
    named = [*model.named_parameters()]
    matrices = [value for _, value in named if value.dim() > 1]
    vectors = [value for _, value in named if value.dim() == 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices},
        {"params": vectors, "lr": 2e-3, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=1e-3, betas=(0.7, 0.95), eps=1e-4, weight_decay=0.1)


@dataclass
class Seen:
    """One step in float64, by the names of the parameters."""

    before: dict[str, Array]
    after: dict[str, Array]
    grad: dict[str, Array]
    raw: dict[str, Array]
    first: dict[str, Array]
    second: dict[str, Array]
    lr: tuple[float, float]
    t: int

    def moved(self, name: str) -> Array:
        return self.after[name] - self.before[name]

    def below(self, path: str, of: dict[str, Array]) -> Array:
        """Everything at and below a module, in one vector."""
        inside = [of[name].ravel() for name in of if not path or name.startswith(f"{path}.")]
        return np.concatenate([*inside, np.zeros(0)])

    def m(self, name: str) -> Array:
        return self.first[name] / (1 - 0.7**self.t)

    def v(self, name: str) -> Array:
        return self.second[name] / (1 - 0.95**self.t)


def wide(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy().copy()


def train(model: SeveralKinds, look: Callable[[Seen], None] = lambda seen: None) -> None:
    """Accumulate twice, clip, step, and lower the rate."""
    optimizer = adamw(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    generator = torch.Generator().manual_seed(1)
    named = dict(model.named_parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2):
            model(torch.randn(6, 2, 6, 6, generator=generator)).square().mean().backward()
        raw = {name: wide(value.grad) for name, value in named.items() if value.grad is not None}
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        grad = {name: wide(value.grad) for name, value in named.items() if value.grad is not None}
        before = {name: wide(value) for name, value in named.items()}
        rates = (optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"])
        optimizer.step()
        schedule.step()
        after = {name: wide(value) for name, value in named.items()}
        state = {name: optimizer.state[named[name]] for name in grad}
        first = {name: wide(kept["exp_avg"]) for name, kept in state.items()}
        second = {name: wide(kept["exp_avg_sq"]) for name, kept in state.items()}
        look(Seen(before, after, grad, raw, first, second, rates, step + 1))


def norm(values: Array) -> float:
    return float(np.sqrt(np.sum(values**2)))


def slope(seen: Seen) -> float:
    """Of the norms of the layers' gradients, from the last to the first."""
    layers = ["conv", "norm", "body.0", "body.2", "frozen", "head"]
    known = [(k, path) for k, path in enumerate(reversed(layers)) if path != "frozen"]
    sizes = [norm(seen.below(path, seen.grad)) for _, path in known]
    return float(np.polyfit([k for k, _ in known], np.log10(sizes), 1)[0])


WEIGHTS = ["conv", "norm", "body.0", "head"]
OF_WEIGHTS: dict[str, Callable[[Seen, str], Any]] = {
    "adam_update_rms": lambda s, w: np.sqrt(np.mean(s.grad[w] ** 2 / np.maximum(s.v(w), 1e-8))),
    "moment_ratio": lambda s, w: norm(s.m(w)) / np.sqrt(s.v(w).sum()),
    "grad_below_eps_fraction": lambda s, w: np.mean(np.abs(s.grad[w]) < 1e-4),
    "effective_lr_quantiles": lambda s, w: np.quantile(
        s.lr[s.before[w].ndim == 1] / (np.sqrt(s.v(w)) + 1e-4),
        [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99],
    ),
    "update_cosine": lambda s, w: (
        -np.vdot(s.moved(w), s.grad[w]) / norm(s.moved(w)) / norm(s.grad[w])
    ),
}

PLACES = ["", "body", "head", "norm"]
OF_ALL: dict[str, Callable[[Seen, str], float]] = {
    "lr": lambda s, path: s.lr[1],
    "weight_decay": lambda s, path: 0.0 if path == "norm" else 0.1,
    "momentum": lambda s, path: 0.7,
    "log_step_size": lambda s, path: math.log(
        norm(s.below(path, {name: s.moved(name) for name in s.after}))
    ),
    "grad_norm": lambda s, path: norm(s.below(path, s.grad)),
}


@pytest.fixture(scope="module")
def seen() -> list[Seen]:
    torch.manual_seed(0)
    steps: list[Seen] = []
    train(SeveralKinds(), steps.append)
    return steps


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    torch.manual_seed(0)
    model, store = SeveralKinds(), Path(tmp_path_factory.mktemp("runs")) / "run.zarr"
    probes: dict[str, Any] = {path: [*OF_WEIGHTS] for path in WEIGHTS}
    for path in PLACES:
        probes[path] = [*probes.get(path, []), *OF_ALL]
    probes[""] = [*probes[""], "grad_depth_slope", "clip_coefficient"]
    probes |= {"head.weight": ["lr", "weight_decay", "log_step_size"], "frozen": ["lr", "momentum"]}
    with nbp.watch(model, store=store, probes=probes) as run:
        train(model)
        assert not run.status().errors
    return run.data.load()


@pytest.mark.parametrize("path", WEIGHTS)
@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_what_an_optimizer_makes_of_a_weight_is_as_defined(
    name: str, path: str, recorded: Any, seen: list[Seen]
) -> None:
    want = [OF_WEIGHTS[name](step, f"{path}.weight") for step in seen]
    np.testing.assert_allclose(recorded[name].sel(module=path), want, rtol=2e-5)


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("name", OF_ALL)
def test_what_is_of_all_parameters_below_a_module_is_as_defined(
    name: str, path: str, recorded: Any, seen: list[Seen]
) -> None:
    want = [OF_ALL[name](step, path) for step in seen]
    found = recorded[name].sel(module=path or "(root)")
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-12)


def test_what_clipping_leaves_is_the_ratio_of_two_norms(recorded: Any, seen: list[Seen]) -> None:
    want = [norm(s.below("", s.grad)) / norm(s.below("", s.raw)) for s in seen]
    assert max(want) < 1
    found = recorded.clip_coefficient.sel(module="(root)")
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_the_gradients_slope_over_depth_is_that_of_a_fitted_line(
    recorded: Any, seen: list[Seen]
) -> None:
    found = recorded.grad_depth_slope.sel(module="(root)")
    np.testing.assert_allclose(found, [slope(step) for step in seen], rtol=1e-4)


def test_a_parameter_has_the_options_of_its_own_group(recorded: Any, seen: list[Seen]) -> None:
    at_weight = recorded.sel(module="head.weight")
    np.testing.assert_allclose(at_weight.lr, [step.lr[0] for step in seen], rtol=1e-6)
    np.testing.assert_allclose(at_weight.weight_decay, 0.1, rtol=1e-6)
    want = [math.log(norm(step.moved("head.weight"))) for step in seen]
    np.testing.assert_allclose(at_weight.log_step_size, want, rtol=1e-5)


def test_a_frozen_layer_has_options_where_the_optimizer_holds_it(recorded: Any) -> None:
    np.testing.assert_allclose(recorded.momentum.sel(module="frozen"), 0.7, rtol=1e-6)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("optimizer_grads_l2norm", "grad_norm"),
        ("grad_norm_clipped", "grad_norm"),
        ("trainer_log_step_size_l2norm", "log_step_size"),
    ],
)
def test_the_names_of_other_systems_are_known(alias: str, name: str) -> None:
    assert as_quantity(alias).name == name


def test_an_optimizer_that_writes_over_gradients_is_compared_with_what_it_was_given(
    tmp_path: Path,
) -> None:
    """Nesterov's momentum is added to the gradients where they are, by torch's foreach kernels."""
    model = nn.Linear(3, 2)
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, foreach=True)
    want = []
    with nbp.watch(model, store=tmp_path / "r.zarr", probes={"": ["update_cosine"]}) as run:
        for step in range(3):
            optimizer.zero_grad()
            model(torch.full((4, 3), step + 1.0)).square().mean().backward()
            assert model.weight.grad is not None
            given, before = wide(model.weight.grad), wide(model.weight)
            optimizer.step()
            moved = wide(model.weight) - before
            want.append(-np.vdot(moved, given) / norm(moved) / norm(given))
    left = model.weight.grad
    assert left is not None
    assert not np.allclose(wide(left), given), "else this shows nothing"
    np.testing.assert_allclose(run.data.update_cosine.sel(module="(root)"), want, rtol=1e-5)


def test_an_optimizer_without_an_option_or_state_leaves_gaps_and_says_why(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    names = ["momentum", "adam_update_rms", "lr"]
    with nbp.watch(model, store=tmp_path / "r.zarr", probes={"": names}) as run:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
        notes = {probe.quantity: probe.note for probe in run.probes()}
        assert not run.status().errors
    assert notes["momentum"] == "no optimizer that has stepped has such an option for it"
    assert notes["adam_update_rms"] == "the optimizer keeps no such state of it"
    np.testing.assert_allclose(run.data.lr.sel(module="(root)"), 0.1, rtol=1e-6)
    assert run.data.momentum.isnull().all()


def test_a_layer_without_a_gradient_and_one_of_zeros_have_no_place_in_the_slope() -> None:
    slope_of = as_quantity("grad_depth_slope")

    @dataclass
    class Sum:
        sumsq: float

    layers = [Sum(1e-8), None, Sum(0.0), Sum(1e-2), Sum(1.0)]
    want = np.polyfit([4, 1, 0], [-4.0, -1.0, 0.0], 1)[0]
    assert slope_of(layers) == pytest.approx(want)
    with pytest.raises(UnreadableError, match="fewer than two layers"):
        slope_of([Sum(1.0), None])
    assert math.isnan(slope_of([Sum(1.0), Sum(math.nan), Sum(2.0)]))
    assert slope_of([Sum(1.0), Sum(1.0)]) == 0
