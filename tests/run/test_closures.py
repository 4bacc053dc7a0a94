"""Steps of optimizers that are given a closure: at rest, due, and mixed with other kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from tests.run.conftest import Watch
from tests.run.loops import batch

N_STEPS, DUE = 30, 7


def passed_on(logged_loss: float) -> float:
    """Return the loss of the step, which is recorded because the loop does not log it."""
    return logged_loss


class Trained:
    """A model that is trained through closures, with what its steps should record."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.optimizer = SGD(self.model.parameters(), lr=0.05)
        self.losses: list[float] = []
        self.norms: list[float] = []

    def forward(self, x: Tensor, by_parts: bool = False) -> Tensor:
        if by_parts:
            for part in self.model:
                x = part(x)
        else:
            x = self.model(x)
        self.norms.append(x.norm().item())
        return x

    def step(self, n: int, by_parts: bool = False) -> None:
        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self.forward(batch(n), by_parts).square().mean()
            loss.backward()
            self.losses.append(loss.item())
            return loss

        self.optimizer.step(closure)

    def plain_step(self, n: int) -> None:
        self.optimizer.zero_grad()
        loss = self.forward(batch(n)).square().mean()
        loss.backward()
        self.losses.append(loss.item())
        self.optimizer.step()

    def evaluate(self) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(batch(0))
        self.model.train()


def closures(one: Trained, n: int) -> None:
    one.step(n)


def closures_and_plain_steps(one: Trained, n: int) -> None:
    (one.plain_step if n // 4 % 2 else one.step)(n)


def parts_now_and_then(one: Trained, n: int) -> None:
    one.step(n, by_parts=n // 3 % 2 == 1)


def evaluated(one: Trained, n: int) -> None:
    one.step(n)
    if n % 5 == 4:
        one.evaluate()


@pytest.mark.parametrize(
    "loop", [closures, closures_and_plain_steps, parts_now_and_then, evaluated]
)
def test_each_step_has_its_own_loss_and_the_due_ones_their_readings(
    loop: Callable[[Trained, int], None], watch: Watch
) -> None:
    one = Trained()
    run = watch(one.model, probes=[])
    run.attach("1", "output_norm", nbp.Every(DUE))
    run.attach("", passed_on, nbp.Steps({10**9}))
    for n in range(N_STEPS):
        loop(one, n)
    losses, norms = run.series("", "backward_loss"), run.series("1", "output_norm")
    assert losses.step.values.tolist() == [*range(N_STEPS)]
    assert losses.values.tolist() == pytest.approx(one.losses)
    assert norms.step.values.tolist() == [*range(0, N_STEPS, DUE)]
    assert norms.values.tolist() == pytest.approx(one.norms[::DUE])


def test_a_request_waits_for_the_next_closure_and_no_longer(watch: Watch) -> None:
    one = Trained()
    run = watch(one.model, probes=[])
    run.attach("1", "output_norm", nbp.Every(1000))
    for n in range(12):
        one.step(n)
    run.stop()
    with pytest.raises(nbp.TrainingStopped, match="stopped before step 12"):
        one.step(12)
    assert len(one.losses) == 12, "the closure was not called"
