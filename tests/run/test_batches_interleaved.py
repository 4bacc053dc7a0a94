"""Whatever order a loop tells things in, each lands in its own step and its own evaluation."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.run.run import Run

MICRO = st.sampled_from(["before", "after", "both", "silent"])
STEP = st.tuples(
    st.lists(MICRO, min_size=1, max_size=3),
    st.integers(0, 2),  # batches evaluated behind it
    st.sampled_from(["in time", "late"]),
)


def mean_index(batch_indices: Tensor) -> Tensor:
    return batch_indices.double().mean()


def weighted(batch_losses: Tensor, batch_indices: Tensor) -> Tensor:
    return (batch_losses.detach().double() * batch_indices).sum()


def beside(output: Tensor, batch_indices: Tensor) -> Tensor:
    return output.double().sum() + batch_indices.double().sum()


QUANTITIES: list[Any] = [mean_index, weighted, beside]


class Loop:
    """A loop that numbers its samples, and knows what each step should have."""

    def __init__(self, run: Run, model: nn.Module) -> None:
        self.run, self.model, self.numbers = run, model, count(1)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.n_steps = 0
        self.held: Tensor | None = None
        """The indices told last: of every forward until others are, or the step ends."""
        self.want: dict[tuple[str, int], list[float]] = {}

    def expect(self, name: str, value: float, step: int) -> None:
        self.want.setdefault((name, step), []).append(value)

    def batch(self, kind: str, phase: str = "") -> Tensor:
        """One forward, with what is told before and after it; returns the losses."""
        indices, x = torch.tensor([next(self.numbers), 0]), torch.randn(2, 3)
        if kind in ("before", "both"):
            self.run.batch(indices=indices)
            self.expect(f"{phase}mean_index", float(indices[0]) / 2, self.n_steps)
            self.held = indices
        losses = self.model(x).square().sum(1)
        if self.held is not None:
            output = F.linear(x, *self.model.parameters()).double().sum().item()
            self.expect(f"{phase}beside", output + float(self.held[0]), self.n_steps)
        if kind in ("after", "both"):
            again = {} if kind == "both" else {"indices": indices}
            self.run.batch(losses=losses, **again)
            sums = (losses.detach().double() * indices).sum().item()
            self.expect(f"{phase}weighted", sums, self.n_steps)
            if again:
                self.expect(f"{phase}mean_index", float(indices[0]) / 2, self.n_steps)
            self.held = indices
        return losses

    def step(self, micros: list[str], n_evaluated: int, when: str) -> None:
        self.held = None
        for kind in micros:
            self.batch(kind).sum().backward()
        late = torch.tensor([float(next(self.numbers))], requires_grad=True) * 1
        self.optimizer.step()
        self.optimizer.zero_grad()
        if when == "late":  # a result of this step, told behind its update
            self.run.batch(losses=late, indices=torch.tensor([1]))
            self.expect("weighted", late.item(), self.n_steps)
            self.expect("mean_index", 1.0, self.n_steps)
        self.n_steps += 1
        with torch.no_grad():
            self.model.eval()
            for _ in range(n_evaluated):
                self.batch("both", "eval_")
            self.model.train()


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=5))
def test_what_is_told_in_any_order_lands_where_it_belongs(steps: list[Any]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.Identity())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.zarr"
        with nbp.watch(model, store=path, probes={"": QUANTITIES}) as run:
            run.attach("", QUANTITIES, phase="eval")
            loop = Loop(run, model)
            for step in steps:
                loop.step(*step)
            assert not run.status().errors
        found = {
            (name, int(step)): value
            for quantity in QUANTITIES
            for name in (quantity.__name__, f"eval_{quantity.__name__}")
            for step, value in _series(run, name)
        }
    want = {key: np.mean(values) for key, values in loop.want.items()}
    assert found.keys() == want.keys()
    np.testing.assert_allclose([found[key] for key in want], [*want.values()], rtol=1e-4, atol=1e-5)


def _series(run: Run, name: str) -> list[tuple[int, float]]:
    if name not in run.data:
        return []
    series = run.series("", name)
    return [*zip(series.step.values.tolist(), series.values.tolist(), strict=True)]
