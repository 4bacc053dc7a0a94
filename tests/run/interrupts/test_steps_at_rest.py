"""Steps in which nothing is due, interrupted anywhere: no interrupt is deferred in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from tests.models import floats
from tests.run.interrupts.interrupting import count, interrupted

NEVER = nbp.Steps({10**9})
FIRST, LAST = 26, 32
"""Updates before the step that is interrupted, which no fact looks at, and updates in all."""
PARTS = 4
"""An exhaustive search is split: a failure then ends a part of it alone."""
batch = floats(6, 4)

pytestmark = pytest.mark.usefixtures("interruptible")


def of_loss(logged_loss: float) -> float:
    """Return the loss of the step, which is measured because the loop does not log it."""
    return logged_loss


class Training:
    """A training of which nothing but the loss is recorded."""

    def __init__(self, folder: Path | None = None) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.losses: list[float] = []
        self.run: nbp.Run | None = None
        if folder is not None:
            self.run = nbp.watch(self.model, store=folder / "r.zarr", probes=[], overwrite=True)
            self.run.attach("", of_loss, NEVER)

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = self.model(batch(0)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def weights(self) -> list[float]:
        return [*torch.nn.utils.parameters_to_vector(self.model.parameters()).tolist()]


def expected() -> tuple[list[float], list[list[float]]]:
    """Return the losses of an unwatched training, and its weights after each update."""
    twin, weights = Training(), []
    for _ in range(LAST):
        twin.step()
        weights.append(twin.weights())
    return twin.losses, weights


def check(folder: Path, point: int, *, opcodes: bool) -> None:
    """Train, interrupted once, until so many updates were made; each has a row with its loss."""
    losses, weights = expected()
    training = Training(folder)
    run = training.run
    assert run is not None
    for _ in range(FIRST):
        training.step()
    where = interrupted(training.step, point, opcodes=opcodes)
    n_done = 1 + weights.index(training.weights())
    for _ in range(LAST - n_done):
        training.step()
    assert training.weights() == weights[-1]
    run.close()
    found = run.series("", "backward_loss")
    assert [*found.coords["step"].values] == [*range(LAST)], where
    np.testing.assert_array_equal(found.values, np.array(losses, np.float32), where)


@pytest.mark.parametrize("point", [3, 17, 40, 66, 90, 120])
def test_each_update_has_its_loss_though_a_step_at_rest_was_interrupted(
    point: int, tmp_path: Path
) -> None:
    check(tmp_path, point, opcodes=False)


def n_instructions(folder: Path) -> int:
    """Return at how many instructions a step can be interrupted."""
    training = Training(folder)
    for _ in range(FIRST):
        training.step()
    found = count(training.step, opcodes=True)
    assert training.run is not None
    training.run.close()
    return found


@pytest.mark.slow
def test_each_update_has_its_loss_at_instructions_all_over_a_step(tmp_path: Path) -> None:
    n = n_instructions(tmp_path)
    for point in range(1, n + 1, max(1, n // 40)):
        check(tmp_path, point, opcodes=True)


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_each_update_has_its_loss_at_every_instruction_of_a_step(part: int, tmp_path: Path) -> None:
    for point in range(1 + part, n_instructions(tmp_path) + 1, PARTS):
        check(tmp_path, point, opcodes=True)
