"""Low-rank adapters (arXiv:2106.09685): frozen weights, and a second matrix that begins at zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW

from tests.libraries.loops.witnessed import Wanted, check, train_beside_a_twin
from tests.models import made
from tests.run.conftest import Watch
from tests.run.oracle import Numbers, float64, norm

pytestmark = pytest.mark.libraries

N_STEPS, N_IN, RANK = 30, 8, 2
FIRST, LAST = torch.randn(N_IN, 16), torch.randn(16, 3)


class Adapted(nn.Module):
    """As in minLoRA and the like: two bare parameters beside a frozen layer."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(RANK, base.in_features) / RANK)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.lora_a.T @ self.lora_b.T


class Adapters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = Adapted(nn.Linear(N_IN, 16)), Adapted(nn.Linear(16, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.gelu(self.first(x)))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(N_IN, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.gelu(self.first(x)))


def by_peft() -> nn.Module:
    config = LoraConfig(r=RANK, target_modules=["first", "last"], lora_dropout=0.1)
    adapted: nn.Module = get_peft_model(Plain(), config)
    return adapted


BUILD = {"own": Adapters, "peft": by_peft}


@pytest.fixture(params=BUILD)
def build(request: pytest.FixtureRequest) -> Callable[[], nn.Module]:
    return BUILD[request.param]


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: one for name, one in model.named_parameters() if one.requires_grad}


def train(model: nn.Module) -> Iterator[Wanted]:
    """Towards another network's answers."""
    adapters = trained_parameters(model)
    optimizer = AdamW(adapters.values(), lr=1e-3)
    for _ in range(N_STEPS):
        x = torch.randn(32, N_IN)
        loss = F.mse_loss(model(x), F.gelu(x @ FIRST) @ LAST)
        optimizer.zero_grad()
        loss.backward()
        before = {name: float64(one) for name, one in adapters.items()}
        optimizer.step()
        yield {
            key: value
            for name, one in adapters.items()
            for key, value in wanted_of(name, before[name], one).items()
        }


def wanted_of(name: str, before: Numbers, now: nn.Parameter) -> Wanted:
    assert now.grad is not None
    size, change = norm(before), norm(float64(now) - before)
    return {
        (name, "weight_norm"): size,
        (name, "grad_norm"): norm(float64(now.grad)),
        (name, "update_norm"): change,
        (name, "update_ratio"): change / size if size else math.nan,
    }


def test_every_adapter_is_recorded_and_a_share_of_nothing_is_a_gap(
    build: Callable[[], nn.Module], watch: Watch
) -> None:
    alone, model = made(build), made(build)
    run = watch(model, probes=["default", "gradients", "alerts"])
    names = list(trained_parameters(model))
    run.attach(names, ["weight_norm", "grad_norm", "update_norm", "update_ratio"])
    wanted = train_beside_a_twin(train, alone, model)
    check(run, wanted)
    zero = [name for name in names if "lora_b" in name.lower()]
    assert len(zero) == 2
    assert all(math.isnan(wanted[0][name, "update_ratio"]) for name in zero)
    assert list(run.alerts) == []


def test_what_is_frozen_is_said_to_be_and_has_no_gradient(
    build: Callable[[], nn.Module], watch: Watch
) -> None:
    model = made(build)
    run = watch(model, probes={"*": ["weight_norm", "grad_norm"]})
    frozen = [name for name, one in model.named_parameters() if not one.requires_grad]
    run.attach(frozen, "grad_norm")
    for _ in train(model):
        pass
    notes = {p.module: p.note for p in run.status().probes if p.quantity == "grad_norm"}
    assert len(frozen) == 4
    assert all("frozen" in notes[name] for name in frozen)
    assert run.data.grad_norm.sel(module=run.data.module.isin(frozen)).isnull().all()
