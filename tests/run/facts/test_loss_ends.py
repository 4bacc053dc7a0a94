"""What a loss compares: targets that outputs cannot reach, or outputs that say nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam

import notebook_probe as nbp
from tests.run.facts.trained import small, train_it

Loss = Callable[[Tensor, Tensor], Tensor]

OUT_OF_RANGE: list[Loss] = [
    lambda out, x: F.mse_loss(out.sigmoid(), 9 * x[:, :2] - 4),
    lambda out, x: (out.tanh() - (9 * x[:, :2] - 4)).square().mean(),
    lambda out, x: ((9 * x[:, 0] - 4) - out[:, 0].tanh()).pow(2).mean(),
    lambda out, x: (out.relu() - (9 * x[:, :2] - 4)).abs().mean(),
    lambda out, x: F.smooth_l1_loss(out.softmax(1), 5 * x[:, :2]),
    lambda out, x: F.mse_loss(out.log_softmax(1), x[:, :2].round()),
    lambda out, x: F.binary_cross_entropy_with_logits(out[:, 0], 255 * x[:, 0].round()),
    lambda out, x: F.binary_cross_entropy_with_logits(out[:, 0], 2 * x[:, 0].round() - 1),
]
IN_RANGE: list[Loss] = [
    lambda out, x: F.mse_loss(out.sigmoid(), x[:, :2]),
    lambda out, x: F.mse_loss(out.sigmoid(), 1.2 * x[:, :2]),  # soft labels beyond 1
    lambda out, x: (out.tanh() - (2 * x[:, :2] - 1)).square().mean(),
    lambda out, x: (out.relu() - (x[:, :2] - 0.01)).square().mean(),
    lambda out, x: F.mse_loss(out, 9 * x[:, :2] - 4),
    lambda out, x: F.mse_loss(out.log_softmax(1), x[:, :2].log_softmax(1)),
    lambda out, x: F.mse_loss(out.sigmoid() * 9, 9 * x[:, :2]),
    lambda out, x: F.binary_cross_entropy_with_logits(out[:, 0], 1.2 * x[:, 0].round()),
    lambda out, x: F.mse_loss(out[:, 0], out[:, 1].tanh()),  # no targets, but two outputs
]


@pytest.mark.parametrize("loss", OUT_OF_RANGE)
def test_targets_that_outputs_cannot_reach_are_named_at_the_first_step(
    loss: Loss, tmp_path: Path
) -> None:
    model = small()
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=3, loss=loss)
    assert alerts == {("targets_out_of_range", 0, ("(root)",))}


@pytest.mark.parametrize("loss", IN_RANGE)
def test_targets_that_outputs_can_reach_are_not_named(loss: Loss, tmp_path: Path) -> None:
    model = small()
    found = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=3, loss=loss)
    assert found == (set(), set())


def by_hand(output: Tensor, targets: Tensor) -> Tensor:
    return ((output - targets) ** 2).mean()


@pytest.mark.parametrize(
    ("factor", "severity", "compare"),
    [
        *[(1e5, "alert", F.mse_loss), (300.0, "remark", F.mse_loss), (20.0, "", F.mse_loss)],
        *[(0.1, "", F.mse_loss), (1e-4, "remark", F.mse_loss)],
        *[(1e5, "alert", by_hand), (300.0, "remark", by_hand), (20.0, "", by_hand)],
    ],
)
def test_targets_far_from_the_size_of_the_outputs_are_named(
    factor: float, severity: str, compare: Loss, tmp_path: Path
) -> None:
    model = small()
    alerts, remarks = train_it(
        tmp_path,
        model,
        [SGD(model.parameters(), 1e-9)],
        n_steps=3,
        loss=lambda out, x: compare(out, factor * (1 + x[:, :2])),
    )
    assert {one[0] for one in alerts} == (
        {"targets_out_of_scale"} if severity == "alert" else set()
    )
    expected = {"targets_out_of_scale"} if severity == "remark" else set()
    assert {one[0] for one in remarks} == expected


@pytest.mark.slow
@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_outputs_that_explain_nothing_of_the_targets_are_a_remark(
    is_shuffled: bool, is_binary: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = Adam(model.parameters(), lr=3e-3)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for _ in range(260):
            x = torch.randn(64, 8)
            y = x[torch.randperm(64), :1] if is_shuffled else x[:, :1]
            loss = (
                F.binary_cross_entropy_with_logits(model(x), (y > 0).float())
                if is_binary
                else F.mse_loss(model(x), y)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    expected = ["no_better_than_constant"] if is_shuffled else []
    assert [one.rule for one in run.remarks] == expected
    assert [*run.alerts] == []
