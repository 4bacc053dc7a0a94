"""Every probe says when it last fired, why it did not, and what it costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import notebook_probe as nbp
from notebook_probe.quantities.stat import Stat
from notebook_probe.run.status import COMPILED, ProbeStatus
from tests.models import floats, made, sgd
from tests.run.conftest import Watch

batch = floats(5, 4)


class Net(nn.Module):
    """Parts for every reason not to have a value."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.lonely, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)
        self.strange, self.ghost, self.talks = Strange(), Ghost(), Talks()
        self.expert = nn.Linear(4, 4)
        self.uses_expert = True

    def forward(self, x: Tensor) -> Tensor:
        self.strange(x), self.ghost(x), self.talks()
        x = self.frozen(x)
        nn.functional.linear(x, self.lonely.weight)
        if self.uses_expert:
            x = self.expert(x)
        return self.head(self.part(x).tanh())


class Strange(nn.Module):
    def forward(self, x: Tensor) -> SimpleNamespace:
        return SimpleNamespace(x=x)


class Ghost(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to("meta")


class Talks(nn.Module):
    def forward(self) -> str:
        return "hello"


def train(model: nn.Module, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


def state_size(state_exp_avg_sumsq: Stat) -> Any:
    return state_exp_avg_sumsq.sumsq


def input_share(grad_input_sumsq: Stat) -> Any:
    return grad_input_sumsq.sumsq


def broken(output: Tensor) -> Tensor:
    raise ZeroDivisionError("on purpose")


def never(step: int) -> bool:
    return False


NOTES: dict[str, tuple[str, Any, Any, str]] = {
    "fires": ("part", "output_norm", None, ""),
    "every fifth step": ("part", "output_norm", "every(5, 3)", ""),
    "later": ("part", "output_norm", "every(100, 50)", "first value at step 50"),
    "nobody knows": ("part", "output_norm", never, "not due yet"),
    "weight used alone": ("lonely", "output_norm", None, "not called by any training forward yet"),
    "its weight": ("lonely", "weight_norm", None, ""),
    "its gradient": ("lonely", "grad_norm", None, "no optimizer step with a gradient here yet"),
    "frozen": ("frozen", "grad_norm", None, "frozen: nothing there requires a gradient"),
    "frozen parameter": ("frozen.bias", "grad_norm", None, "frozen: nothing there requires"),
    "needs none": (
        "frozen",
        "output_grad_norm",
        None,
        "called, but no gradient reached its output",
    ),
    "passes none on": ("frozen", input_share, None, "called, but no gradient passed through it"),
    "no such state": ("part", state_size, None, "the optimizer keeps no such state of it"),
    "unknown container": (
        "strange",
        "output_norm",
        None,
        "called, but returns SimpleNamespace, in which no tensors can be found",
    ),
    "no values": ("ghost", "output_norm", None, "Tensor of torch.float32, torch.strided, on meta"),
    "no tensors": ("talks", "output_norm", None, "called, but with no tensor that can be read"),
    "broken": ("part", broken, None, "disabled after 3 errors in a row"),
}


def only(run: nbp.Run) -> ProbeStatus:
    (probe,) = run.status().probes
    return probe


@pytest.mark.parametrize("reason", NOTES)
def test_a_probe_without_values_says_why(reason: str, watch: Watch) -> None:
    place, quantity, schedule, note = NOTES[reason]
    model = made(Net)
    run = watch(model, probes=None)
    run.attach(place, quantity, schedule)
    train(model, sgd(model), range(4))
    run.settle()
    probe = only(run)
    assert probe.note.startswith(note), probe.note
    assert bool(probe.note) == bool(note)
    fires = note == ""
    assert (probe.n_values > 0, probe.last_step >= 0) == (fires, fires)
    waits = note.startswith(("first value", "not due"))
    assert probe.waits == waits
    assert (probe in run.status().silent) == (not fires and not waits)


def test_before_its_first_step_a_probe_waits_and_nothing_is_wrong(watch: Watch) -> None:
    model = made(Net)
    optimizer = sgd(model)
    run = watch(model, probes=None)
    run.attach("part", "output_norm")
    assert only(run).note == "first value at step 0"
    model(batch(0)).square().mean().backward()
    assert (only(run).note, run.status().silent) == ("first value at step 0", ())
    run.attach("head", "output_norm")
    waiting = next(probe for probe in run.status().probes if probe.module == "head")
    assert (waiting.note, waiting.waits) == ("measured from the next step on", True)
    optimizer.step()
    train(model, optimizer, range(2))
    run.settle()
    assert [probe.note for probe in run.status().probes] == ["", ""]
    assert [probe.attached_step for probe in run.status().probes] == [0, 1]


@pytest.mark.parametrize("schedule", ["every(1)", "every(4)", "linear(4, 0)"])
def test_a_probe_that_misses_a_step_or_two_is_not_called_silent(
    schedule: str, watch: Watch
) -> None:
    model = made(Net)
    run = watch(model, probes=None)
    run.attach("expert", "output_norm", schedule)
    optimizer = sgd(model)
    train(model, optimizer, range(9))
    model.uses_expert = False
    train(model, optimizer, range(9, 10))
    run.settle()
    assert only(run).note == ""


def test_hooks_that_somebody_took_off_are_missed(watch: Watch) -> None:
    model = made(Net)
    run = watch(model, probes={"part": ["output_norm"], "head": ["output_norm"]})
    optimizer = sgd(model)
    train(model, optimizer, range(2))
    model.part._forward_hooks.clear()
    train(model, optimizer, range(2, 4))
    run.settle()
    notes = {probe.module: probe.note for probe in run.status().probes}
    assert notes == {"part": "somebody took our hooks off this module", "head": ""}


def test_an_evaluation_probe_says_that_nobody_has_evaluated(watch: Watch) -> None:
    model = made(Net)
    run = watch(model, probes=None)
    run.attach("part", "output_norm", phase="eval")
    train(model, sgd(model), range(3))
    run.settle()
    assert only(run).quantity == "eval_output_norm"
    told = only(run).note
    assert "evaluation" in told or told.startswith("first value"), told
    model.eval()
    model(batch(0))
    model.train()
    run.settle()
    assert (only(run).note, only(run).last_step) == ("", 3)


def test_a_compiled_model_is_told_for_its_calls_and_not_for_its_parameters(watch: Watch) -> None:
    model = made(lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    run = watch(model, probes={"0": ["output_norm", "weight_norm", "grad_norm"]})
    compiled = torch.compile(model, backend="eager")
    optimizer = sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        compiled(batch(step)).square().mean().backward()
        optimizer.step()
    run.settle()
    notes = {probe.quantity: probe.note for probe in run.status().probes}
    torch._dynamo.reset()
    assert notes == {"output_norm": COMPILED, "weight_norm": "", "grad_norm": ""}


def test_after_the_model_is_gone_the_probes_can_still_be_asked(watch: Watch) -> None:
    class Short(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.part(x)

    model = made(Short)
    run = watch(model, probes={"part": ["output_norm"]})
    train(model, SGD(model.parameters(), lr=0.1), range(2))
    run.close()
    assert [(probe.n_values, probe.last_step) for probe in run.status().probes] == [(2, 1)]


# ---------------------------------------------------------------- errors


def test_a_probe_that_fails_now_and_then_keeps_its_last_error(watch: Watch) -> None:
    calls = Counter[str]()

    def flaky(output: Tensor) -> float:
        calls["n"] += 1
        if calls["n"] % 2:
            raise ValueError(f"call {calls['n']}")
        return 1.0

    model = made(Net)
    run = watch(model, probes={"part": [flaky, "output_norm"]})
    train(model, sgd(model), range(6))
    run.settle()
    first, other = run.status().probes
    assert (first.n_values, first.n_errors, first.disabled) == (3, 3, False)
    assert first.error == "ValueError: call 5"
    assert run.status().errors == (first,)
    assert (other.n_values, other.n_errors, other.note) == (6, 0, "")


# ---------------------------------------------------------------- costs


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(time, "perf_counter", made_up)
    return made_up


def test_the_costs_of_the_probes_add_up_to_the_cost_of_the_run(clock: Clock, watch: Watch) -> None:
    """Every step takes 100 ms: 70 of the user's own, 20 of one quantity, 10 of another."""

    def dear(output: Tensor) -> float:
        clock.now += 0.020
        return 1.0

    def cheap(grad_output: Tensor) -> float:
        clock.now += 0.010
        return 1.0

    model = made(Net)
    run = watch(model, probes={"part": [dear, "output_norm"], "head": [cheap]})
    optimizer = sgd(model)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        clock.now += 0.070
        loss.backward()
        optimizer.step()
    run.settle()
    status = run.status()
    assert status.cost_percent == pytest.approx(30.0)
    assert status.steps_per_second == pytest.approx(10.0)
    costs = {probe.quantity: probe.cost_us for probe in status.probes}
    assert costs["cheap"] == pytest.approx(10_000)
    assert costs["dear"] + costs["output_norm"] == pytest.approx(20_000), "one moment, shared"
    assert sum(probe.cost_percent for probe in status.probes) == pytest.approx(30.0)
    listed = {info.name: info.cost_us for info in run.catalogue()}
    assert listed["output_norm"] == pytest.approx(costs["output_norm"])
    assert listed["weight_norm"] is None, "nobody measures it"


def test_a_probe_that_is_seldom_due_costs_little_per_step(clock: Clock, watch: Watch) -> None:
    def dear(output: Tensor) -> float:
        clock.now += 0.050
        return 1.0

    model = made(Net)
    run = watch(model, probes=None)
    run.attach("part", dear, "every(5)")
    optimizer = sgd(model)
    for step in range(10):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        clock.now += 0.100
        optimizer.step()
    run.settle()
    assert only(run).n_values == 2
    assert only(run).cost_us == pytest.approx(10_000), "two times 50 ms in ten steps"
    assert run.status().cost_percent == pytest.approx(100 * 0.1 / 1.1)


# ---------------------------------------------------------------- in words


def test_the_status_prints_what_costs_most_and_what_is_silent_grouped_by_reason(
    clock: Clock, watch: Watch
) -> None:
    def dear(output: Tensor) -> float:
        clock.now += 0.025
        return 1.0

    model = made(Net)
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
    run.settle()
    lines = str(run.status()).splitlines()
    assert lines[0].startswith("net: idle, step 4, 10 steps/s, ")
    assert lines[0].endswith(run.location)
    assert lines[1] == "6 probes cost 25 % of step time"
    assert "  dear: 25000 µs per step, 25 %" in lines
    silent = [line for line in lines if line.startswith("silent: ")]
    assert (
        "silent: output_norm at lonely, input_norm at lonely: not called by any training forward "
        "yet (no value yet)"
    ) in silent
    assert any("strange" in line and "SimpleNamespace" in line for line in silent)
    assert not any("output_std" in line for line in silent), "it only waits"
    assert "error: broken at head: ZeroDivisionError: on purpose" in lines


def test_a_long_group_of_silent_probes_is_shortened(watch: Watch) -> None:
    model = nn.ModuleDict({f"m{i}": nn.Linear(4, 2) for i in range(9)})
    model["used"] = nn.Linear(4, 2)
    run = watch(model, probes={"m*": ["output_norm"]})
    optimizer = sgd(model)
    for step in range(3):
        model["used"](batch(step)).sum().backward()
        optimizer.step()
    run.settle()
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
    run.settle()
    walks = Counter[str]()
    plain: Callable[..., Any] = nn.Module.named_modules

    def counted(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if module is model and not args:
            walks["n"] += 1
        return plain(module, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "named_modules", counted)
    assert len(run.status().probes) == 180
    assert walks["n"] <= 2
