"""In whatever order things happen, a probe batch leaves training as it is without one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from tests.models import floats, loss_of, made
from tests.probes.parity import differing, everything

batch = floats(5, 4)


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 2))


class Loop:
    """A user's loop, one action after the other."""

    def __init__(self) -> None:
        self.model = made(net)
        self.optimizer = SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.n = 0

    def forward(self) -> None:
        self.n += 1
        loss_of(self.model(batch(self.n))).backward()

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()

    def evaluate(self) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(batch(self.n))
        self.model.train()

    def freeze(self) -> None:
        self.model[0].requires_grad_(not self.model[0].weight.requires_grad)


def loss_fn(output: Tensor, targets: Any) -> Tensor:
    return loss_of(output) + 0 * torch.rand(())


def breaks(output: Tensor, targets: Any) -> Tensor:
    if torch.is_grad_enabled():  # not when it is tried
        raise ValueError("broken on purpose")
    return loss_of(output)


PROBING = {
    "keep": lambda run: run.probe_batch(batch(99), None, loss_fn),
    "keep one that breaks": lambda run: run.probe_batch(batch(98), None, breaks),
    "curvature": lambda run: run.attach("", ["sharpness", "sam_sharpness"]),
    "drift": lambda run: run.attach("*", "feature_drift", "every(2)"),
    "detach": lambda run: run.detach(""),
    "read": lambda run: run.data.load(),
}
TRAINING = ("forward", "update", "evaluate", "freeze")
ACTIONS = st.sampled_from([*TRAINING, *TRAINING[:2] * 2, *PROBING])


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(ACTIONS, max_size=20))
def test_training_is_the_same_whatever_is_probed_when(actions: list[str]) -> None:
    left = []
    for watched in (False, True):
        loop = Loop()
        with TemporaryDirectory() as folder:
            run = nbp.watch(loop.model, store=Path(folder) / "run.zarr") if watched else None
            for action in actions:
                if action in TRAINING:
                    getattr(loop, action)()
                elif run is not None:
                    with suppress(nbp.errors.UnknownNameError):  # nothing to detach
                        PROBING[action](run)
            if run is not None:
                run.close()
        left.append(everything(loop.model, [loop.optimizer]))
    assert differing(*left) == []
