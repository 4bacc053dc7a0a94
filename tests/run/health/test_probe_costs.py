"""What probes cost, told by a clock that only moves when it is told to; and the status in words."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from notebook_probe.probes.around_optimizer import Updates
from notebook_probe.probes.loss.arrivals import FIRST_STEPS
from notebook_probe.probes.loss.step_loss import LossPass, StepLoss
from notebook_probe.probes.step import calling
from notebook_probe.probes.step.calling import CallSample, HookOverhead
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.sink import OpenGate
from notebook_probe.quantities.reduce.stat import Number
from tests.models import made, sgd
from tests.run.conftest import Watch
from tests.run.health.parts import PartUsedDirectly, batch, broken, only, train


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Tell how many seconds calls of hooks take beside what they see; none, until told."""
    made_up: dict[str, HookOverhead] = {}
    monkeypatch.setattr(calling, "_known", made_up)

    def tell(**seconds: float) -> None:
        made_up.update(
            {moment: HookOverhead(*2 * [CallSample(0.0, one)]) for moment, one in seconds.items()}
        )

    tell(forward=0.0, backward=0.0)
    return tell


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, beside: Callable[..., None]) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(time, "perf_counter", made_up)
    return made_up


def trained(model: nn.Module, n_steps: int, clock: Clock, own_s: float) -> None:
    """Train steps of so many seconds of their own."""
    optimizer = sgd(model)
    for step in range(n_steps):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        clock.now += own_s
        loss.backward()
        optimizer.step()


def test_the_costs_of_the_probes_add_up_to_the_cost_of_the_run(clock: Clock, watch: Watch) -> None:
    """Every step takes 100 ms: 70 of the user's own, 20 of one quantity, 10 of another."""

    def dear(output: Tensor) -> float:
        clock.now += 0.020
        return 1.0

    def cheap(grad_output: Tensor) -> float:
        clock.now += 0.010
        return 1.0

    model = made(PartUsedDirectly)
    run = watch(model, probes={"part": [dear, "output_norm"], "head": [cheap]})
    trained(model, 10, clock, 0.070)
    run.controls.settle()
    status = run.status()
    assert status.cost_percent == pytest.approx(30.0)
    assert status.steps_per_second == pytest.approx(10.0)
    costs = {probe.quantity: probe.cost_us for probe in status.probes}
    assert costs["cheap"] == pytest.approx(10_000)
    assert costs["dear"] + costs["output_norm"] == pytest.approx(20_000), "one moment, shared"
    assert sum(probe.cost_percent for probe in status.probes) == pytest.approx(30.0)
    listed = {info.name: info.cost_us for info in run.attachable()}
    assert listed["output_norm"] == pytest.approx(costs["output_norm"])
    assert listed["weight_norm"] is None, "nobody measures it"
    run.attach("head", "weight_norm")
    run.close()
    last = {probe.quantity: probe.cost_us for probe in run.status().probes}
    assert last == {**costs, "weight_norm": 0.0}, "what it cost does not go with the run"


def test_a_probe_that_is_seldom_due_costs_little_per_step(clock: Clock, watch: Watch) -> None:
    def dear(output: Tensor) -> float:
        clock.now += 0.050
        return 1.0

    model = made(PartUsedDirectly)
    run = watch(model, probes=None)
    run.attach("part", dear, "every(5)")
    trained(model, 10, clock, 0.100)
    run.controls.settle()
    assert only(run).n_values == 2
    assert only(run).cost_us == pytest.approx(10_000), "two times 50 ms in ten steps"
    assert run.status().cost_percent == pytest.approx(100 * 0.1 / 1.1)


def test_no_share_is_above_the_whole_where_few_steps_are_dear(clock: Clock, watch: Watch) -> None:
    """Nine of ten steps take 10 ms, the tenth 140: what is due in it took 130 of 230."""

    def dear(output: Tensor) -> float:
        clock.now += 0.130
        return 1.0

    model = made(PartUsedDirectly)
    run = watch(model, probes=None)
    run.attach("part", dear, "every(10)")
    trained(model, 20, clock, 0.010)
    run.controls.settle()
    status = run.status()
    assert only(run).cost_us == pytest.approx(13_000)
    assert only(run).cost_percent == pytest.approx(100 * 130 / 230)
    assert only(run).cost_percent == pytest.approx(status.cost_percent)
    run.attach("head", "weight_norm")
    shares = [one.cost_percent for one in run.probes()]
    assert shares == [pytest.approx(100 * 130 / 230), 0.0], "what it was before"


def test_what_evaluations_cost_is_a_share_of_the_training_too(clock: Clock, watch: Watch) -> None:
    """Every fifth step of 10 ms is followed by an evaluation in which a probe takes 20."""

    def dear(output: Tensor) -> float:
        clock.now += 0.020
        return 1.0

    model = made(PartUsedDirectly)
    run = watch(model, probes=None)
    run.attach("part", dear, phase="eval")
    optimizer = sgd(model)
    for step in range(10):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        clock.now += 0.010
        optimizer.step()
        if step % 5 == 0:
            with torch.no_grad():
                model.eval()(batch(step))
            model.train()
    run.controls.settle()
    assert only(run).cost_percent == pytest.approx(100 * 40 / 140)


def test_what_torch_takes_to_call_a_hook_is_counted_and_shared_by_who_asked_for_it(
    clock: Clock, beside: Callable[..., None], watch: Watch
) -> None:
    """A step of 100 ms: the root has two hooks, the part one of its own, and its gradient another.

    Of these 24 ms of which no hook sees anything eight are of the root, which serves nobody.
    """
    beside(forward=0.004, backward=0.012)
    model = made(PartUsedDirectly)
    run = watch(model, probes={"part": ["output_norm", "output_grad_norm"]})
    trained(model, 10, clock, 0.100)
    run.controls.settle()
    status = run.status()
    assert status.total_cost_s == pytest.approx(10 * 0.024)
    assert status.total_s == pytest.approx(10 * 0.100), "torch's own time is in the step's already"
    costs = {probe.quantity: probe.cost_us for probe in status.probes}
    assert costs == pytest.approx({"output_norm": 4_000, "output_grad_norm": 12_000})


@pytest.mark.parametrize(("reads_arrivals", "calls"), [(False, 1), (True, 2)])
def test_what_the_hooks_of_an_accumulation_take_is_counted_from_their_first_line_on(
    clock: Clock,
    beside: Callable[..., None],
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
    reads_arrivals: bool,
    calls: int,
) -> None:
    """Finding the step takes 3 ms, and what no hook sees of each call 2."""
    find = Updates.accumulated

    def finding(updates: Updates, slot: Any) -> Any:
        clock.now += 0.003
        return find(updates, slot)

    def raw(grad_raw: Tensor) -> float:
        return 1.0

    def micro(grad_micro: Tensor) -> float:
        return 1.0

    monkeypatch.setattr(Updates, "accumulated", finding)
    beside(accumulated=0.002)
    model = made(PartUsedDirectly)
    run = watch(model, probes={"head": [micro if reads_arrivals else raw]})
    trained(model, 10, clock, 0.100)
    run.controls.settle()
    (probe,) = run.status().probes
    assert probe.cost_us == pytest.approx(3_000 + calls * 2_000)


def test_what_hooks_do_around_a_reading_and_what_closing_takes_is_counted(
    clock: Clock, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves by 4 ms before an update, by 2 after it, by 5 as a step closes."""

    def slowed(owner: type, name: str, seconds: float) -> None:
        original = getattr(owner, name)

        def slow(*given: Any) -> Any:
            clock.now += seconds
            return original(*given)

        monkeypatch.setattr(owner, name, slow)

    slowed(Updates, "update_comes", 0.004)
    slowed(Updates, "step_ends", 0.002)
    slowed(StepFrame, "close", 0.005)
    slowed(StepFrame, "moves_on", 0.005)
    model = made(PartUsedDirectly)
    run = watch(model, probes=None)
    trained(model, 10, clock, 0.100)
    run.controls.settle()
    status = run.status()
    assert status.total_cost_s == pytest.approx(10 * (0.004 + 0.002 + 0.005))
    assert status.total_s - status.total_cost_s == pytest.approx(10 * 0.100)


def test_what_hearing_of_a_backward_takes_is_counted_and_the_pass_itself_is_not(
    clock: Clock, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves by 2 ms before each pass, by 3 after it, by 7 within, by 1 in a hook."""
    begins, ends, arrived = StepLoss.backward_begins, StepLoss.backward_ends, StepLoss.arrived

    def beginning(loss: StepLoss, value: Number, roots: Sequence[Tensor]) -> LossPass | None:
        clock.now += 0.002
        return begins(loss, value, roots)

    def arriving(loss: StepLoss, *given: Any) -> None:
        clock.now += 0.001
        arrived(loss, *given)

    def ending(loss: StepLoss, *given: Any, has_come_through: bool) -> None:
        clock.now += 0.003
        ends(loss, *given, has_come_through=has_come_through)

    def passing(gradient: Tensor) -> None:
        clock.now += 0.007

    monkeypatch.setattr(StepLoss, "backward_begins", beginning)
    monkeypatch.setattr(StepLoss, "arrived", arriving)
    monkeypatch.setattr(StepLoss, "backward_ends", ending)
    model = made(PartUsedDirectly)
    run = watch(model, probes={"": ["loss_ema"]})
    run._parts.observer.updates.uncleared.end()  # which takes its share in the first steps
    optimizer = sgd(model)
    # In the first steps at the weights and biases of two layers, as the pass reaches no third one;
    # then at one parameter.
    n_arrivals = 4 * (FIRST_STEPS + 1) + 10 - (FIRST_STEPS + 1)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.register_hook(passing)
        loss.backward()
        optimizer.step()
    run.controls.settle()
    status = run.status()
    cost_s = 10 * 0.005 + n_arrivals * 0.001
    assert status.total_cost_s == pytest.approx(cost_s)
    assert status.total_s == pytest.approx(cost_s + 10 * 0.007)


@pytest.mark.parametrize("calls_root", [True, False])
def test_a_pause_is_no_cost(calls_root: bool, clock: Clock, watch: Watch) -> None:
    """Also where modules are called one by one, so that a hook of a part opens the step."""

    class Held(OpenGate):
        def pass_to(self, step: int) -> float:
            clock.now += 50.0
            return 50.0

    model = made(PartUsedDirectly)
    run = watch(model, probes={"part": ["output_norm"]})
    run._parts.observer.steps.gate = Held()
    optimizer = sgd(model)
    for step in range(5):
        optimizer.zero_grad()
        output = model(batch(step)) if calls_root else model.head(model.part(batch(step)))
        clock.now += 0.1
        output.square().mean().backward()
        optimizer.step()
    run.controls.settle()
    status = run.status()
    assert status.total_cost_s == pytest.approx(0.0)
    assert status.total_s == pytest.approx(0.5)


# ---------------------------------------------------------------- in words


def test_the_status_prints_what_costs_most_and_what_is_silent_grouped_by_reason(
    clock: Clock, watch: Watch
) -> None:
    def dear(output: Tensor) -> float:
        clock.now += 0.025
        return 1.0

    model = made(PartUsedDirectly)
    run = watch(model, name="net", probes={"part": [dear], "lonely": ["output_norm", "input_norm"]})
    run.attach("strange", "output_norm")
    run.attach("head", broken)
    run.attach("part", "output_std", "every(100, 50)")
    optimizer = sgd(model)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        clock.now += 0.075
        loss.backward()
        optimizer.step()
    run.controls.settle()
    lines = str(run.status()).splitlines()
    assert lines[0].startswith("net: idle, step 4, 10 steps/s, ")
    assert lines[0].endswith(run.location)
    assert re.fullmatch(
        r"6 probes cost 25 % of step time, measured lately; \S+ k?B on disk", lines[1]
    )
    assert "most of it, on average since probes last changed:" in lines
    assert "  dear: 25000 µs per step, 100 % of it" in lines
    assert str(run.status()).count("% of step time") == 1, "one figure, and what it is of"
    silent = [line for line in lines if line.startswith("silent: ")]
    assert (
        "silent: output_norm at lonely, input_norm at lonely: not called by any training forward "
        "yet (no value yet)"
    ) in silent
    assert any("strange" in line and "SimpleNamespace" in line for line in silent)
    assert not any("output_std" in line for line in silent), "it only waits"
    assert "error: broken at head: ZeroDivisionError: on purpose" in lines


class Wide(nn.Module):
    """Nine layers that nobody uses beside one that is."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(4, 2)
        for i in range(9):
            self.add_module(f"m{i}", nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x)


def test_a_long_group_of_silent_probes_is_shortened(watch: Watch) -> None:
    model = made(Wide)
    run = watch(model, probes={"m*": ["output_norm"]})
    train(model, sgd(model), range(3))
    run.controls.settle()
    (line,) = [line for line in str(run.status()).splitlines() if line.startswith("silent")]
    assert "output_norm at m0" in line
    assert "output_norm at m4" not in line
    assert "and 5 more: not called" in line


def test_the_price_of_asking_does_not_grow_with_the_square_of_the_probes(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is walked through once for all of them, however many there are."""
    model = nn.ModuleDict({f"m{i}": nn.Linear(4, 2) for i in range(60)})
    run = watch(model, probes={"m*": ["output_norm", "output_mean", "grad_norm"]})
    optimizer = sgd(model)
    model["m0"](batch(0)).sum().backward()
    optimizer.step()
    run.controls.settle()
    walks = Counter[str]()
    plain: Callable[..., Any] = nn.Module.named_modules

    def counted(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if module is model and not args:
            walks["n"] += 1
        return plain(module, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "named_modules", counted)
    assert len(run.status().probes) == 180
    assert walks["n"] <= 2
