"""Healthy kinds of training that look ill at first sight, each with a twin that is ill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn import functional as F
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp

Loss = Callable[[int], Tensor]
Said = set[str]


def rules_of(
    folder: Path, model: nn.Module, optimizer: Optimizer, loss: Loss, n_steps: int
) -> tuple[Said, Said]:
    """Train, and return the rules of the alerts and those of the remarks."""
    probes = ["default", "alerts"]
    with nbp.watch(model, optimizer, folder / "a.zarr", probes, budget=None) as run:
        for step in range(n_steps):
            found = loss(step)
            optimizer.zero_grad()
            found.backward()
            optimizer.step()
            if step % 10 == 0:
                run.alerts  # noqa: B018  # it also looks for silent probes
    return {one.rule for one in run.alerts}, {one.rule for one in run.remarks}


@pytest.mark.slow
def test_categories_and_radial_bases_are_empty_on_purpose_and_dead_units_are_not(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    centers = torch.linspace(0, 5, 20)

    def trained(bias: float, name: str) -> Said:
        model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.constant_(model[0].bias, bias)  # type: ignore[arg-type]

        def loss(step: int) -> Tensor:
            radius = torch.tensor([1.0, 1.414, 2.0])[torch.randint(3, (64,))]
            basis = (1 - (radius[:, None] - centers).abs() / 0.25).clamp(min=0)
            found: Tensor = (model(basis).squeeze() - 1 / radius).square().mean()
            return found

        return rules_of(tmp_path / name, model, Adam(model.parameters(), 3e-3), loss, 40)[0]

    assert trained(0.0, "healthy") == set()
    assert "silent_inputs" in trained(-10.0, "dead")


class Adapted(nn.Module):
    """A frozen layer with a low-rank update."""

    def __init__(self, width: int = 32, rank: int = 8) -> None:
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.lora_A = nn.Linear(width, rank, bias=False)
        self.lora_B = nn.Linear(rank, width, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + self.lora_B(self.lora_A(x))
        return out


def test_a_low_rank_update_is_not_judged_by_its_width(tmp_path: Path) -> None:
    model = nn.Sequential(Adapted(), nn.Linear(32, 64), nn.Linear(64, 64))
    with nbp.watch(model, store=tmp_path / "a.zarr", probes="alerts") as run:
        places = {one.module for one in run.status().probes if one.quantity == "effective_rank"}
    assert places == {"0.base", "0.lora_A", "2"}  # "1" has the directions of its input, too


@pytest.mark.slow
def test_a_new_batch_norm_may_settle_and_one_that_never_follows_is_named(tmp_path: Path) -> None:
    def trained(momentum: float, name: str) -> Said:
        torch.manual_seed(0)
        norm = nn.BatchNorm1d(32, momentum=momentum)
        model = nn.Sequential(nn.Linear(16, 32), norm, nn.ReLU(), nn.Linear(32, 4))
        nn.init.constant_(model[0].bias, 2.0)  # type: ignore[arg-type]

        def loss(step: int) -> Tensor:
            x = torch.randn(64, 16) + 1
            return F.cross_entropy(model(x), x[:, :4].argmax(1))

        return rules_of(tmp_path / name, model, Adam(model.parameters(), 1e-3), loss, 110)[0]

    assert trained(0.01, "settles") == set()
    never = trained(1e-4, "never follows")
    assert never == {"batchnorm_mismatch", "batchnorm_momentum"}


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.classes, self.boxes = nn.Linear(8, 32), nn.Linear(32, 2), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.body(x).relu()
        return self.classes(found), self.boxes(found)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "ill"), [(0.0, set()), (1e-12, {"vanishing_gradient"})])
def test_a_head_without_a_positive_sample_yet_is_idle_and_a_vanished_gradient_is_an_alert(
    scale: float, ill: Said, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = Detector()

    def loss(step: int) -> Tensor:
        x = torch.randn(16, 8)
        classes, boxes = model(x)
        return F.cross_entropy(classes, (x[:, 0] > 1).long()) + scale * boxes.abs().sum()

    alerts, remarks = rules_of(tmp_path, model, SGD(model.parameters(), 0.05), loss, 60)
    assert alerts == ill
    assert remarks == ({"step_without_effect"} if ill else {"idle_gradient"})


def test_parameters_that_are_trained_by_functional_calls_need_no_module_calls(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 1))
    optimizer = Adam(model.parameters(), 1e-3)

    def inner(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(functional_call(model, parameters, (x,)), y)

    def outer(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        slope = grad(inner)(parameters, x, y)
        return inner({k: one - 0.01 * slope[k] for k, one in parameters.items()}, x, y)

    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for _ in range(30):
            x = torch.rand(10, 1)
            given = {name: one.detach() for name, one in model.named_parameters()}
            slopes = grad(outer)(given, x, x.sin())
            for name, one in model.named_parameters():
                one.grad = slopes[name]
            optimizer.step()
            run.alerts  # noqa: B018
    assert list(run.alerts) == []
    assert {one.rule for one in run.remarks} == {"stale_probe"}


@pytest.mark.slow
@pytest.mark.parametrize(("n_calls", "ill"), [(3, set()), (1, {"batchnorm_mismatch"})])
def test_a_discriminator_mixes_its_batches_and_one_of_two_images_is_named(
    n_calls: int, ill: Said, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(32)
    model = nn.Sequential(nn.Linear(16, 32), norm, nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def loss(step: int) -> Tensor:
        if n_calls == 1:
            x = torch.randn(2, 16)
            return F.softplus(-model(x) * x[:, :1]).mean()
        real, made = torch.randn(32, 16) + 3, torch.randn(32, 16) - 3
        found = F.softplus(-model(real)).mean() + F.softplus(model(made)).mean()
        return found + F.softplus(model(0.9 * made)).mean()

    alerts, _ = rules_of(tmp_path, model, Adam(model.parameters(), 2e-4), loss, 90)
    assert alerts == ill


class Branch(nn.Module):
    """Residual branch whose last gain begins at zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.second, self.last = nn.Linear(width, width), nn.BatchNorm1d(width)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x + self.last(self.second(self.norm(self.first(x)).relu()))
        return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own_rate", "ill"), [(None, set()), (3e-6, {"lr_low"})], ids=["warmup", "group with no rate"]
)
def test_branches_that_begin_at_zero_wait_for_a_warmup_and_a_group_with_no_rate_is_named(
    own_rate: float | None, ill: Said, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    stem = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32))
    model = nn.Sequential(stem, *(Branch(32) for _ in range(4)), nn.Linear(32, 2))
    rest = [one for name, one in model.named_parameters() if not name.startswith("0.1")]
    groups: list[dict[str, Any]] = [
        {"params": stem[1].parameters(), "lr": own_rate or 1e-5},
        {"params": rest},
    ]
    optimizer = SGD(groups, lr=1e-5 if own_rate is None else 0.05, momentum=0.9)

    def loss(step: int) -> Tensor:
        if own_rate is None:
            for group in optimizer.param_groups:
                group["lr"] = 1e-5 + step // 30 * 5e-3  # once per epoch
        x = torch.randn(16, 16)
        return F.cross_entropy(model(x), (x[:, 0] > 0).long())

    alerts, _ = rules_of(tmp_path, model, optimizer, loss, 90)
    assert alerts == ill


@pytest.mark.slow
@pytest.mark.parametrize(("n_wrong", "ill"), [(1, set()), (20, {"loss_spike", "adam_spike_ahead"})])
def test_a_hard_batch_passes_and_one_that_is_worse_than_untrained_is_named(
    n_wrong: int, ill: Said, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    truth = torch.randn(8, 3)

    def loss(step: int) -> Tensor:
        x = torch.randn(32, 8)
        y = (x @ truth).argmax(1)
        wrong = torch.arange(32) < (n_wrong if step == 140 else 0)
        return F.cross_entropy(model(x), torch.where(wrong, (y + 1) % 3, y))

    assert rules_of(tmp_path, model, Adam(model.parameters(), 1e-2), loss, 145)[0] == ill


class Falling(nn.Module):
    """A constant acceleration that is learned as a layer of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.velocity = nn.Linear(1, 1)
        self.acceleration = nn.Linear(1, 1)

    def forward(self, t: Tensor) -> Tensor:
        constant = self.acceleration(torch.zeros_like(t))
        found: Tensor = self.velocity(t) + constant * t.square() / 2
        return found


def test_a_layer_of_one_zero_is_a_constant_that_is_learned(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Falling()

    def loss(step: int) -> Tensor:
        t = torch.rand(64, 1)
        found: Tensor = (model(t) - (1.5 * t - 4.9 * t.square())).square().mean()
        return found

    assert rules_of(tmp_path, model, Adam(model.parameters(), 0.05), loss, 60) == (set(), set())


class Masked(nn.Linear):
    """A layer half of whose scores are masked, as of tokens to come."""

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.triu(torch.ones(8, 8, dtype=torch.bool), 1)
        return super().forward(x).masked_fill(mask, torch.finfo(x.dtype).min)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_smallest_number_of_a_type_is_a_mask_and_large_scores_are_named(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    def trained(scale: float, name: str) -> Said:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), Masked(8, 8)).to(dtype)

        def loss(step: int) -> Tensor:
            scores = model(scale * torch.rand(8, 8, dtype=dtype)).float()
            return F.cross_entropy(scores, torch.zeros(8, dtype=torch.long))

        return rules_of(tmp_path / name, model, SGD(model.parameters(), 1e-3), loss, 3)[0]

    assert trained(1.0, "healthy") == set()
    assert "large_outputs" in trained(1e3, "large")
