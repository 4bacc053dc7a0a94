"""Steps in which nothing is due, of several optimizers: each has the loss that a due one has."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.probes.around_optimizer import Updates
from notebook_probe.probes.due.readings import DueFrame
from tests.run.conftest import Watch
from tests.run.loops import batch

N_STEPS = 24
"""Steps of a part of a training: hooks are on all parameters in the first eight steps."""


def passed_on(logged_loss: float) -> float:
    """Return the loss of the step, which is measured because the loop does not log it."""
    return logged_loss


class Net(nn.Module):
    """Two parts, each with an optimizer, and another model that is not watched."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.first(x))
        return y


class Training:
    """Steps of many kinds: a model has two optimizers, and another model is trained beside it."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model, self.other = Net(), nn.Linear(4, 4)
        self.optimizers: list[Optimizer] = [
            AdamW(self.model.first.parameters(), lr=0.01),
            SGD(self.model.last.parameters(), lr=0.01),
        ]
        self.of_other = SGD(self.other.parameters(), lr=0.01)
        self.n = 0

    def loss(self) -> Tensor:
        return self.model(batch(self.n)).square().mean()

    def update(self, *which: int) -> None:
        for one in which:
            self.optimizers[one].step()

    def clear(self) -> None:
        for one in self.optimizers:
            one.zero_grad()

    def both(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(0, 1)

    def the_other_way_round(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(1, 0)

    def first_only(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(0)

    def last_only(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(1)

    def passes_of_their_own(self) -> None:
        self.clear()
        output = self.model.first(batch(self.n))
        self.model.last(output.detach()).square().mean().backward()
        self.update(1)
        output.abs().mean().backward()
        self.update(0)

    def two_passes(self) -> None:
        self.clear()
        self.loss().backward()
        self.loss().backward()
        self.update(0, 1)

    def twice(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(0, 1, 0)

    def discarded(self) -> None:
        self.loss().backward()
        self.both()

    def _train_other(self) -> None:
        self.of_other.zero_grad()
        self.other(batch(self.n)).square().mean().backward()
        self.of_other.step()

    def another_model(self) -> None:
        self._train_other()
        self.both()

    def another_model_within(self) -> None:
        self.clear()
        self.loss().backward()
        self.update(0)
        self._train_other()
        self.update(1)

    def evaluated(self) -> None:
        self.both()
        self.model.eval()
        with torch.no_grad():
            self.model(batch(0))
        self.model.train()


KINDS = [
    name for name in vars(Training) if name[0] != "_" and name not in ("loss", "update", "clear")
]
programs = st.lists(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), min_size=1, max_size=3
)


def recorded(program: Sequence[Sequence[str]], every: int) -> tuple[list[int], list[float]]:
    """Train, and return the steps and values of the loss that was found."""
    one = Training()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "run.zarr"
        with closing(nbp.watch(one.model, store=store, probes=[], budget=None)) as run:
            run.attach("", passed_on, nbp.Steps({10**9}))
            run.attach("first", "output_mean", nbp.Every(every))
            for kinds in program:
                for n in range(N_STEPS):
                    getattr(one, kinds[n % len(kinds)])()
                    one.n += 1
            losses = run.series("", "backward_loss")
            return losses.step.values.tolist(), losses.values.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_step_has_the_loss_that_a_due_one_has(kind: str) -> None:
    assert recorded([[kind]], every=10**6) == recorded([[kind]], every=1)


@pytest.mark.slow
@settings(max_examples=40)
@given(program=programs)
def test_steps_of_any_kinds_have_the_losses_that_due_ones_have(
    program: Sequence[Sequence[str]],
) -> None:
    assert recorded(program, every=10**6) == recorded(program, every=1)


def test_an_optimizer_that_another_thread_meets_meanwhile_stops_no_update(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, apply = Training(), Updates._apply_loss

    def meets(updates: Updates, frame: DueFrame, optimizer: Optimizer) -> None:
        apply(updates, frame, optimizer)
        updates._usual = {}  # as `meet` does

    run = watch(one.model, probes=[])
    run.attach("", passed_on, nbp.Steps({10**9}))
    for _ in range(N_STEPS):
        one.both()
    monkeypatch.setattr(Updates, "_apply_loss", meets)
    one.two_passes()
    assert len(run.series("", "backward_loss")) == N_STEPS + 1


def test_an_optimizer_whose_layer_the_model_gets_later_is_its_own_from_then_on(
    watch: Watch,
) -> None:
    torch.manual_seed(0)
    model, head = nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 4)
    optimizers = [SGD(one.parameters(), lr=0.01) for one in (model, head)]
    run = watch(model)
    norms = []
    for n in range(2 * N_STEPS):
        if n == N_STEPS:
            model.append(head)
        for optimizer in optimizers:
            optimizer.zero_grad()
        output = model(batch(n)) if n >= N_STEPS else head(model(batch(n)))
        output.square().mean().backward()
        gradients = [one.grad for one in head.parameters() if one.grad is not None]
        norms.append(nn.utils.get_total_norm(gradients).item())
        for optimizer in optimizers:
            optimizer.step()
    found = run.series("1", "grad_norm")
    assert found.step.values.tolist() == [*range(N_STEPS, 2 * N_STEPS)]
    assert found.values.tolist() == pytest.approx(norms[N_STEPS:])


@pytest.mark.parametrize("place", [0, 1])
def test_an_optimizer_that_gets_a_parameter_of_the_model_is_its_own_from_then_on(
    place: int, watch: Watch
) -> None:
    """Also where one parameter takes the place of another."""
    one = Training()
    run = watch(one.model, probes=[])
    run.attach("", passed_on, nbp.Steps({10**9}))
    for _ in range(N_STEPS):
        one.another_model()
    (group,) = one.of_other.param_groups
    group["params"][place] = one.model.first.weight
    losses = []
    for _ in range(N_STEPS):
        one.of_other.zero_grad()
        losses.append(one.loss())
        losses[-1].backward()
        one.of_other.step()
    assert run.status().step == 2 * N_STEPS
    wanted = [loss.item() for loss in losses]
    assert run.series("", "backward_loss").values[N_STEPS:].tolist() == pytest.approx(wanted)
