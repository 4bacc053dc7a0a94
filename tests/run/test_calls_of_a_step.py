"""How many calls of ours a training step takes: each costs more than the work in most of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

import notebook_probe as nbp
from benchmarks.calls import calls_of
from notebook_probe.probes import step_sequence
from tests.run.conftest import Watch

NEVER = nbp.Steps({10**9})

IDLE, WITH_LOSS = 12, 19
"""Bounds for a step in which nothing is due, without and with a loss that the loop does not log."""
SHOWN = 8
"""The same for a panel that shows the run: it refers to the inputs of the last forward."""
FACTS = 7
"""The same for the facts of execution, which look at every fourth update or more rarely."""
LOGGED, SCHEDULED, DRAWN, PASSED = 24, 13, 4, 13
"""The same for a number that the loop logs in each step, for a scheduler that it steps, for a batch
that it draws from `Run.batches`, and for `Run.boundary`."""
CLOSED = 28
"""The same for a closure that the optimizer's step is given, as Lightning gives one."""
SECOND, OTHER = 8, 12
"""The same for a second optimizer of the model, and for a step of a model that is not watched."""
FORWARD = 100
"""The same for a forward in which one probe is due: it also closes the step before."""
DUE = 92
"""The same for each layer of a step in which all of the default probes are due."""
WARM, MEASURED, REPEATS = 24, 8, 3
"""Steps before and while calls are counted: rules look at each of the first twenty steps."""


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps at rest are accounted for by the clock: in which steps is chance."""
    monkeypatch.setattr(step_sequence, "KEEP_S", math.inf)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def chain(n_layers: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(n_layers)))


def stepping(model: nn.Module, optimizer: Optimizer) -> Callable[[], None]:
    batch = torch.ones(3, 4)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def resting(watch: Watch) -> tuple[nbp.Run, SGD, Callable[[], None]]:
    """Return a run of which nothing is due, its optimizer and a step of the training."""
    model = chain(3)
    run = watch(model, probes=[])
    run.attach("*", ["weight_norm"], NEVER)
    optimizer = SGD(model.parameters(), lr=0.001)
    return run, optimizer, stepping(model, optimizer)


def calls_in(step: Callable[[], None]) -> float:
    """Return how many functions of the package a step calls.

    What is handed on by the clock falls into some steps and not into others, so that the count is
    the fewest of three.
    """
    return min(calls_of(step, MEASURED).total() for _ in range(REPEATS)) / MEASURED


def calls_without_facts(step: Callable[[], None]) -> int:
    """Return how many functions a step calls that no fact looks at."""
    return min(calls_of(step, 1).total() for _ in range(MEASURED))


@pytest.mark.parametrize("n_layers", [3, 12])
@pytest.mark.parametrize("optimizer", [SGD, AdamW])
def test_a_step_in_which_nothing_is_due_costs_a_few_calls_whatever_the_model(
    n_layers: int, optimizer: type[SGD] | type[AdamW], watch: Watch
) -> None:
    model = chain(n_layers)
    run = watch(model, probes=[])
    run.attach("*", ["weight_norm", "output_norm", "output_grad_norm"], NEVER)
    step = stepping(model, optimizer(model.parameters(), lr=0.001))
    for _ in range(WARM):
        step()
    assert calls_in(step) <= IDLE + FACTS
    assert calls_without_facts(step) <= IDLE


def test_a_panel_that_shows_the_run_leaves_steps_at_rest(watch: Watch) -> None:
    model = chain(3)
    run = watch(model, probes=[])
    run.attach("*", ["weight_norm"], NEVER)
    leave = run.controls.follow()
    step = stepping(model, SGD(model.parameters(), lr=0.001))
    for _ in range(WARM):
        step()
    assert IDLE < calls_without_facts(step) <= IDLE + SHOWN
    leave()
    step()
    assert calls_without_facts(step) <= IDLE


def test_a_step_that_has_raised_costs_later_ones_nothing(watch: Watch) -> None:
    class Raises(SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            raise OSError("out of memory")

    with pytest.raises(OSError, match="memory"):
        Raises(chain(1).parameters()).step()
    model = chain(3)
    run = watch(model, probes=[])
    run.attach("*", ["weight_norm"], NEVER)
    step = stepping(model, SGD(model.parameters(), lr=0.001))
    for _ in range(WARM):
        step()
    assert calls_in(step) <= IDLE + FACTS


def passed_on(logged_loss: float) -> float:
    """Return the loss of the step, which is measured because the loop does not log it."""
    return logged_loss


def test_the_loss_of_a_step_in_which_nothing_is_due_costs_a_few_more(watch: Watch) -> None:
    model = chain(3)
    run = watch(model, probes=[])
    run.attach("", passed_on, NEVER)
    step = stepping(model, SGD(model.parameters(), lr=0.001))
    for _ in range(WARM):
        step()
    assert calls_in(step) <= WITH_LOSS + FACTS
    assert calls_without_facts(step) <= WITH_LOSS
    assert len(run.series("", "backward_loss")) == WARM + (REPEATS + 1) * MEASURED


def test_a_number_that_the_loop_logs_leaves_steps_at_rest(watch: Watch) -> None:
    run, _, step = resting(watch)
    losses = iter(range(1000))

    def logging() -> None:
        step()
        run.log(number=next(losses))

    for _ in range(WARM):
        logging()
    assert calls_without_facts(logging) <= IDLE + LOGGED
    logged = run.series("", "number")
    assert [*logged.values] == [*logged.coords["step"].values] == [*range(WARM + MEASURED)]


def test_a_loop_over_batches_of_the_run_leaves_steps_at_rest(watch: Watch) -> None:
    run, _, step = resting(watch)
    batches = iter(run.batches([None] * (WARM + MEASURED)))

    def drawn() -> None:
        next(batches)
        step()

    for _ in range(WARM):
        drawn()
    assert calls_without_facts(drawn) <= IDLE + DRAWN


def test_a_loop_that_passes_the_boundary_leaves_steps_at_rest(watch: Watch) -> None:
    run, _, step = resting(watch)

    def passing() -> None:
        run.boundary()
        step()

    for _ in range(WARM):
        passing()
    assert calls_without_facts(passing) <= IDLE + PASSED


def test_a_scheduler_that_changes_the_rate_leaves_steps_at_rest(watch: Watch) -> None:
    _, optimizer, step = resting(watch)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)

    def scheduled() -> None:
        step()
        scheduler.step()

    for _ in range(WARM):
        scheduled()
    assert calls_without_facts(scheduled) <= IDLE + SCHEDULED


def test_an_optimizer_with_a_closure_leaves_steps_at_rest(watch: Watch) -> None:
    model, batch = chain(3), torch.ones(3, 4)
    optimizer = SGD(model.parameters(), lr=0.001)
    watch(model, probes=[]).attach("*", ["weight_norm"], NEVER)

    def closure() -> float:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        return loss.item()

    def step() -> None:
        optimizer.step(closure)

    for _ in range(WARM):
        step()
    assert calls_without_facts(step) <= IDLE + CLOSED


@pytest.mark.parametrize(
    ("place", "quantity", "most"), [("", passed_on, WITH_LOSS), ("*", "weight_norm", IDLE)]
)
def test_a_second_optimizer_leaves_steps_at_rest(
    place: str, quantity: nbp.Quantity | str, most: int, watch: Watch
) -> None:
    model, batch = chain(4), torch.ones(3, 4)
    optimizers = SGD(model[:2].parameters(), lr=0.001), AdamW(model[2:].parameters(), lr=0.001)
    watch(model, probes=[]).attach(place, quantity, NEVER)

    def step() -> None:
        model.zero_grad()
        model(batch).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()

    for _ in range(WARM):
        step()
    assert calls_without_facts(step) <= most + SECOND


def test_steps_of_another_model_leave_those_of_the_watched_one_at_rest(watch: Watch) -> None:
    model, other = chain(3), chain(2)
    watch(model, probes=[]).attach("", passed_on, NEVER)
    step = stepping(model, SGD(model.parameters(), lr=0.001))
    step_other = stepping(other, SGD(other.parameters(), lr=0.001))

    def both() -> None:
        step()
        step_other()

    for _ in range(WARM):
        both()
    assert calls_without_facts(both) <= WITH_LOSS + OTHER


@pytest.mark.parametrize("quantity", ["output_norm", "output_grad_norm", "weight_norm"])
def test_a_forward_with_one_due_probe_costs_about_a_hundred_calls(
    quantity: str, watch: Watch
) -> None:
    """With closing the step before, and opening this one."""
    model, batch = chain(3), torch.ones(3, 4)
    optimizer = SGD(model.parameters(), lr=0.001)
    watch(model, probes=[]).attach("0", quantity, nbp.Every(1))
    step = stepping(model, optimizer)
    for _ in range(WARM):
        step()
    counts, outputs = [], list[torch.Tensor]()

    def forward() -> None:
        outputs.append(model(batch))

    for _ in range(MEASURED):
        counts.append(calls_of(forward, 1).total())
        outputs.pop().square().mean().backward()
        optimizer.step()
    assert min(counts) <= FORWARD


def test_a_due_step_costs_so_many_calls_for_each_layer(watch: Watch) -> None:
    """With making its values, which is done for several steps together."""

    def counted(n_layers: int) -> int:
        model = chain(n_layers)
        run = watch(model)
        step = stepping(model, SGD(model.parameters(), lr=0.001))
        step()
        step()
        run.controls.settle()
        found = calls_of(step, MEASURED) + calls_of(run.controls.settle, 1)
        run.close()
        return found.total()

    few, many = (min(counted(n) for _ in range(REPEATS)) for n in (2, 10))
    assert (many - few) / (8 * MEASURED) <= DUE
