"""Every optimizer of torch, in every way it is computed: the update is what really changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn, optim
from torch.optim import Optimizer

from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play, steps_of
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)

Make = Callable[[nn.Module], Optimizer]

WAYS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}

KINDS: dict[str, tuple[type[Optimizer], dict[str, object], str]] = {
    "sgd": (optim.SGD, {"lr": 0.1}, "for-loop foreach fused"),
    "sgd with nesterov": (
        optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        "for-loop foreach fused",
    ),
    "sgd uphill": (optim.SGD, {"lr": 0.01, "maximize": True}, "for-loop foreach fused"),
    "adam": (optim.Adam, {"lr": 0.01}, "for-loop foreach fused"),
    "adam with amsgrad": (optim.Adam, {"lr": 0.01, "amsgrad": True}, "for-loop foreach fused"),
    "adamw": (optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}, "for-loop foreach fused"),
    "adagrad": (optim.Adagrad, {"lr": 0.1}, "for-loop foreach fused"),
    "rmsprop": (optim.RMSprop, {"lr": 0.01, "centered": True}, "for-loop foreach"),
    "rprop": (optim.Rprop, {"lr": 0.01}, "for-loop foreach"),
    "adafactor": (optim.Adafactor, {"lr": 0.01}, "for-loop foreach"),
    "adadelta": (optim.Adadelta, {}, "for-loop foreach"),
    "adamax": (optim.Adamax, {"lr": 0.01}, "for-loop foreach"),
    "nadam": (optim.NAdam, {"lr": 0.01}, "for-loop foreach"),
    "radam": (optim.RAdam, {"lr": 0.01}, "for-loop foreach"),
    "asgd": (optim.ASGD, {"lr": 0.1}, "for-loop foreach"),
}

CHOICES = [(kind, way) for kind, (_, _, ways) in KINDS.items() for way in ways.split()]


@pytest.mark.parametrize(("kind", "way"), CHOICES)
def test_the_update_is_the_exact_difference_whatever_the_optimizer(
    kind: str, way: str, watch: Watch
) -> None:
    made_by, options, _ = KINDS[kind]
    chosen: dict[str, Any] = {**options, **WAYS[way]}
    loop = steps_of(lambda model: made_by(model.parameters(), **chosen), batch, 4)
    check(*play(mlp, loop, watch))


def test_an_update_that_is_orthogonalised_is_read_as_it_was_applied(watch: Watch) -> None:
    """Muon takes matrices only; the biases belong to nobody and have no update."""
    loop = steps_of(
        lambda model: optim.Muon([value for value in model.parameters() if value.ndim == 2]), batch
    )
    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert np.isnan(run.data.update_ratio.sel(module="0.bias")).all()


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 4, sparse=True)

    def forward(self, words: Tensor) -> Tensor:
        return self.embed(words)


def test_rows_that_a_sparse_gradient_does_not_name_are_not_updated(watch: Watch) -> None:
    given = [torch.tensor([[1, 1, 2]]), torch.tensor([[3, 3, 3]])]

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = optim.SparseAdam(list(model.parameters()), lr=0.1)
        for words in given:
            optimizer.zero_grad()
            loss_of(model(words)).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(Words, loop, watch)
    check(run, diary)
    changed = diary.entries[1].after["embed.weight"] != diary.entries[1].before["embed.weight"]
    assert changed.sum() == 4


# ---------------------------------------------------------------- awkward steps


class Replacing(Optimizer):
    """Puts a new tensor in the place of the old one, as some hand-written optimizers do."""

    def __init__(self, values: Sequence[nn.Parameter]) -> None:
        super().__init__(values, {})

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for value in group["params"]:
                value.data = value.data - 0.1 * value.grad


def test_a_weight_whose_storage_is_replaced_in_the_step_has_its_update(watch: Watch) -> None:
    loop = steps_of(lambda model: Replacing(list(model.parameters())), batch)
    run, diary = play(mlp, loop, watch)
    check(run, diary)
    ratios = run.series("0.weight", "update_ratio")
    assert (ratios > 0).all()


def test_a_gradient_set_to_none_right_after_the_step_has_been_read(watch: Watch) -> None:
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = optim.Adam(model.parameters())
        for step in range(3):
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert run.series("0.bias", "grad_norm").step.values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_update_in_half_precision_is_the_difference_of_the_stored_values(
    dtype: torch.dtype, watch: Watch
) -> None:
    """Changes below one unit in the last place leave nothing behind, and the record says so."""

    def trained(model: nn.Module) -> list[float]:
        optimizer, weight = optim.SGD(model.parameters(), lr=1.0), model.get_parameter("weight")
        told = []
        for rate in (1e-9, 0.3, 2.0):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            model(torch.linspace(-1, 3, 20, dtype=dtype).reshape(5, 4)).float().sum().backward()
            before = weight.detach().double().numpy().copy()
            optimizer.step()
            change = weight.detach().double().numpy() - before
            told.append(float(np.linalg.norm(change) / np.linalg.norm(before)))
        return told

    def build() -> nn.Module:
        return nn.Linear(4, 8).to(dtype)

    alone, watched = made(build), made(build)
    run = watch(watched, probes={"weight": ["update_ratio"]})
    expected = trained(alone)
    trained(watched)
    assert differing(everything(alone), everything(watched)) == []
    assert expected[0] == 0.0
    assert expected[1] > 0
    np.testing.assert_allclose(run.series("weight", "update_ratio"), expected, rtol=1e-6)


def change_in_double(update: Tensor) -> Tensor:
    """Sum of the changes' sizes."""
    return update.double().abs().sum()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_own_quantity_is_given_the_update_of_half_precision_unrounded(
    dtype: torch.dtype, watch: Watch
) -> None:
    """The difference of two 16-bit values needs more than 16 bits."""

    def trained(model: nn.Module) -> list[tuple[float, float]]:
        optimizer, weight = optim.SGD(model.parameters(), lr=1.0), model.get_parameter("weight")
        told = []
        for rate in (1e-9, 0.3, 2.0):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            model(torch.linspace(-1, 3, 20, dtype=dtype).reshape(5, 4)).float().sum().backward()
            before = weight.detach().double().numpy().copy()
            optimizer.step()
            change = weight.detach().double().numpy() - before
            told.append((float(np.linalg.norm(change) / np.linalg.norm(before)),
                         float(np.abs(change).sum())))  # fmt: skip
        return told

    def build() -> nn.Module:
        return nn.Linear(4, 8).to(dtype)

    alone, watched = made(build), made(build)
    run = watch(watched, probes={"weight": ["update_ratio", change_in_double]})
    expected = trained(alone)
    trained(watched)
    assert differing(everything(alone), everything(watched)) == []
    assert expected[0] == (0.0, 0.0)
    assert expected[1][0] > 0
    found = [run.series("weight", name).values for name in ("update_ratio", "change_in_double")]
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-6)
