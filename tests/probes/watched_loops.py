"""A loop that anybody may act in after each step, and runs that it can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn
from torch.optim import Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of
from tests.probes.parameters.optimizer_oracles import Diary
from tests.run.conftest import Watch

batch = floats(5, 4)


def plain_loop(
    after: Callable[[nn.Module, int], None] = lambda model, step: None, steps: int = 5
) -> Callable[[nn.Module, Diary], Sequence[Optimizer]]:
    """Some steps; ``after`` is called after each of them, on the watched model alone."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
            if not diary.alone:
                after(model, step)
        return [optimizer]

    return loop


class Runs:
    """Watches, and keeps the run where the loop can reach it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.all: list[nbp.Run] = []

    def __call__(self, model: nn.Module, **options: object) -> nbp.Run:
        self.all.append(self._watch(model, **options))
        return self.all[-1]

    @property
    def run(self) -> nbp.Run:
        return self.all[0]
