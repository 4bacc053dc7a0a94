"""Steps that a callback announces for an optimizer that torch does not know."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.probes.step.optimizer_steps import step_begins, step_ended
from tests.models import normal


class Announcer(torch.optim.Optimizer):
    """Has the parameters and never steps."""


def test_a_step_that_is_announced_is_recorded_with_its_update(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2, bias=False)
    announcer = Announcer(model.parameters(), {"lr": 0.5})
    sizes = []
    with nbp.watch(model, announcer, tmp_path / "run.zarr", probes={"": ["update_norm"]}) as run:
        for step in range(3):
            model(normal(step, 4, 3)).square().mean().backward()
            before = model.weight.detach().clone()
            step_begins(announcer)
            assert model.weight.grad is not None
            model.weight.data -= 0.5 * model.weight.grad
            step_ended(announcer)
            sizes.append(float((model.weight.detach() - before).norm()))
            model.weight.grad = None
            run.log(loss=float(step))
    assert run.series("", "loss").step.values.tolist() == [0, 1, 2]
    torch.testing.assert_close(torch.tensor(run.series("", "update_norm").values).tolist(), sizes)
