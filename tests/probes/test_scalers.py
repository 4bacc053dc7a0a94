"""Loss scaling: gradients as they are applied, and steps that an overflow skips."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import SGD, Adam, AdamW, Optimizer

from tests.models import floats, mlp
from tests.probes.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch

batch = floats(5, 4)

Make = Callable[[nn.Module], Optimizer]

MAKERS: dict[str, Make] = {
    "sgd": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9),
    "adam": lambda model: Adam(model.parameters(), lr=0.01),
    "fused sgd": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True),
    "fused adamw": lambda model: AdamW(model.parameters(), lr=0.01, fused=True),
}
UNFUSED = ["sgd", "adam"]


def scaled_backward(model: nn.Module, scaler: GradScaler, given: Tensor) -> None:
    with torch.autocast("cpu", torch.float16):
        output = model(given)
    scaler.scale((output.float() - 0.3).square().mean()).backward()


def overflowing(make: Make) -> Callable[[nn.Module, Diary], Sequence[Optimizer]]:
    """The second of four batches is infinite; ``scaler.step`` decides what comes of it."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer, scaler = make(model), GradScaler("cpu", init_scale=1024.0)
        for step in range(4):
            optimizer.zero_grad()
            given = batch(step)
            given[0, 0] = torch.inf if step == 1 else given[0, 0]
            scaled_backward(model, scaler, given)
            before, n_known = scaler.get_scale(), len(diary.entries)
            with diary.update(optimizer):
                scaler.step(optimizer)
                diary.gradients()
            scaler.update()
            if scaler.get_scale() < before:
                diary.entries[n_known].owned = set()  # nothing was applied
        return [optimizer]

    return loop


@pytest.mark.parametrize("kind", UNFUSED)
def test_an_overflow_that_skips_the_step_makes_no_row_and_its_forward_pools_on(
    kind: str, watch: Watch
) -> None:
    run, diary = play(mlp, overflowing(MAKERS[kind]), watch)
    skipped = diary.entries.pop(1)
    for place, kept in skipped.calls.items():
        for quantity, parts in kept.items():
            diary.entries[1].calls[place][quantity] = (
                parts + diary.entries[1].calls[place][quantity]
            )
    check(run, diary)
    assert np.isfinite(run.data.grad_norm.sel(module="0.weight")).all()
    assert not np.isfinite(run.data.output_norm.sel(module="0")[1]), "the overflow is seen there"
