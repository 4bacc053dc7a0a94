"""Every probe says when it last fired, why it did not, and what it costs."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from notebook_probe.quantities.reduce.stat import Stat
from notebook_probe.run.health.status import COMPILED
from notebook_probe.run.health.why_silent import OF_OTHERS
from tests.models import made, sgd
from tests.run.conftest import Watch
from tests.run.health.parts import Strange, batch, broken, only, train


class WithoutValues(nn.Module):
    """Parts for every reason not to have a value."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.lonely, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)
        self.strange, self.ghost, self.talks = Strange(), Ghost(), Talks()
        self.expert, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4).eval()
        self.uses_expert = True

    def forward(self, x: Tensor) -> Tensor:
        self.strange(x), self.ghost(x), self.talks()
        x = self.norm(self.frozen(x))
        nn.functional.linear(x, self.lonely.weight)
        if self.uses_expert:
            x = self.expert(x)
        return self.head(self.part(x).tanh())


class Ghost(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to("meta")


class Talks(nn.Module):
    def forward(self) -> str:
        return "hello"


def state_size(state_exp_avg_sumsq: Stat) -> Any:
    return state_exp_avg_sumsq.sumsq


def input_share(grad_input_sumsq: Stat) -> Any:
    return grad_input_sumsq.sumsq


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
        "called, but its output requires no gradient",
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
    "of batches": ("norm", "bn_mean_tid", None, "called, but it is in evaluation mode itself"),
    "broken": ("part", broken, None, "disabled after 3 errors in a row"),
}


@pytest.mark.parametrize("reason", NOTES)
def test_a_probe_without_values_says_why(reason: str, watch: Watch) -> None:
    place, quantity, schedule, note = NOTES[reason]
    model = made(WithoutValues)
    run = watch(model, probes=None)
    run.attach(place, quantity, schedule)
    train(model, sgd(model), range(4))
    run.controls.settle()
    probe = only(run)
    assert probe.note.startswith(note), probe.note
    assert bool(probe.note) == bool(note)
    fires = note == ""
    assert (probe.n_values > 0, probe.last_step >= 0) == (fires, fires)
    waits = note.startswith(("first value", "not due"))
    assert probe.waits == waits
    assert (probe in run.status().silent) == (not fires and not waits)
    run.close()
    assert only(run).note == probe.note


def test_before_its_first_step_a_probe_waits_and_nothing_is_wrong(watch: Watch) -> None:
    model = made(WithoutValues)
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
    run.controls.settle()
    assert [probe.note for probe in run.status().probes] == ["", ""]
    assert [probe.attached_step for probe in run.status().probes] == [0, 1]


def test_a_probe_that_once_had_values_says_so_when_they_cease(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"expert": ["output_norm", "output_grad_norm", "grad_norm"]})
    optimizer = sgd(model)
    train(model, optimizer, range(3))
    run.controls.settle()
    assert not run.status().silent
    model.uses_expert = False
    train(model, optimizer, range(3, 12))
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.status().silent}
    assert set(notes) == {"output_norm", "output_grad_norm", "grad_norm"}
    for quantity in ("output_norm", "output_grad_norm"):
        assert notes[quantity].startswith("not called"), notes[quantity]
    assert {probe.last_step for probe in run.status().silent} == {2}
    model.uses_expert = True
    train(model, optimizer, range(12, 14))
    run.controls.settle()
    assert not run.status().silent


def test_a_new_probe_does_not_take_the_calls_of_an_earlier_one_for_its_own(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"expert": ["output_norm"]})
    optimizer = sgd(model)
    train(model, optimizer, range(3))
    run.detach("expert")
    model.uses_expert = False
    run.attach("expert", "input_norm")
    train(model, optimizer, range(3, 6))
    run.controls.settle()
    assert only(run).note.startswith("not called")


@pytest.mark.parametrize("schedule", ["every(1)", "every(4)", "linear(4, 0)"])
def test_a_probe_that_misses_a_step_or_two_is_not_called_silent(
    schedule: str, watch: Watch
) -> None:
    model = made(WithoutValues)
    run = watch(model, probes=None)
    run.attach("expert", "output_norm", schedule)
    optimizer = sgd(model)
    train(model, optimizer, range(9))
    model.uses_expert = False
    train(model, optimizer, range(9, 10))
    run.controls.settle()
    assert only(run).note == ""


def test_hooks_that_somebody_took_off_are_missed(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"part": ["output_norm"], "head": ["output_norm"]})
    optimizer = sgd(model)
    train(model, optimizer, range(2))
    model.part._forward_hooks.clear()
    train(model, optimizer, range(2, 4))
    run.controls.settle()
    notes = {probe.module: probe.note for probe in run.status().probes}
    assert notes == {"part": "other code removed our hooks from this module", "head": ""}


def test_what_the_model_no_longer_has_is_told(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"part": ["output_norm"], "part.bias": ["grad_norm"]})
    run.attach("expert", ["output_norm", "weight_norm"])
    model.part = nn.Linear(4, 4, bias=False)  # another in its place goes on under the name
    del model.expert
    model.uses_expert = False
    train(model, sgd(model), range(6))
    run.controls.settle()
    notes = {(probe.module, probe.quantity): probe.note for probe in run.status().probes}
    assert notes == {
        ("part", "output_norm"): "",
        ("part.bias", "grad_norm"): "the model no longer has it",
        ("expert", "output_norm"): "the model no longer has it",
        ("expert", "weight_norm"): "the model no longer has it",
    }


def test_an_evaluation_probe_says_that_nobody_has_evaluated(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes=None)
    run.attach("part", "output_norm", phase="eval")
    train(model, sgd(model), range(3))
    run.controls.settle()
    assert only(run).quantity == "eval_output_norm"
    told = only(run).note
    assert "evaluation" in told or told.startswith("first value"), told
    model.eval()
    model(batch(0))
    model.train()
    train(model, sgd(model), range(3, 4))
    run.controls.settle()
    assert (only(run).note, only(run).last_step, only(run).n_values) == ("", 3, 1)


def test_a_compiled_model_is_told_for_its_calls_and_not_for_its_parameters(watch: Watch) -> None:
    model = made(lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    probes = {"0": ["output_norm", "weight_norm", "grad_norm"]}
    run = watch(model, probes=probes, on_compiled="skip")
    compiled = torch.compile(model, backend="eager")
    optimizer = sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        compiled(batch(step)).square().mean().backward()
        optimizer.step()
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.status().probes}
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

    model = made(WithoutValues)
    run = watch(model, probes={"part": [flaky, "output_norm"]})
    train(model, sgd(model), range(6))
    run.controls.settle()
    first, other = run.status().probes
    assert (first.n_values, first.n_errors, first.disabled) == (3, 3, False)
    assert first.error == "ValueError: call 5"
    assert run.status().errors == (first,)
    assert (other.n_values, other.n_errors, other.note) == (6, 0, "")


def test_after_the_end_a_probe_still_says_why_it_was_silent_though_the_model_is_gone(
    watch: Watch,
) -> None:
    model = made(lambda: nn.Sequential(nn.Linear(4, 2)))
    run = watch(model, probes={"0": ["adam_update_rms"]})
    optimizer = sgd(model)
    model(batch(0)).square().mean().backward()
    optimizer.step()
    run.close()
    del model, optimizer
    gc.collect()
    (probe,) = run.status().probes
    assert probe.note == "the optimizer keeps no such state of it"


# ---------------------------------------------------------------- steps that do not end


def test_what_was_called_in_a_step_that_never_ends_is_not_called_unreadable(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"expert": ["output_norm", "output_grad_norm"]})
    model.uses_expert = False
    train(model, sgd(model), range(1))
    model.uses_expert = True
    model(batch(1)).sum().backward()
    assert {probe.note for probe in run.probes()} == {
        "called in step 1, which no optimizer step has ended yet; in a loop without an optimizer "
        "call run.step() after each backward"
    }
    run.step()
    assert [probe.note for probe in run.probes()] == ["", ""]


def test_what_was_called_in_the_open_step_waits_for_its_end(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes={"expert": ["output_norm"]})
    optimizer = sgd(model)
    model.uses_expert = False
    train(model, optimizer, range(1))
    model.uses_expert = True
    train(model, optimizer, range(1))
    assert only(run).note == "called in step 1, which is still open"
    run.controls.settle()
    assert only(run).note == ""


def test_a_few_forwards_without_a_step_are_told(watch: Watch) -> None:
    model = made(WithoutValues)
    run = watch(model, probes=None)
    for n in range(6):
        model(batch(n)).sum().backward()
        assert run.status().problem.startswith(f"{n + 1} training forwards and no") == (n >= 4)
    assert "call run.step() after each backward" in str(run.status())


def test_as_many_forwards_as_before_are_no_problem_and_many_more_are(watch: Watch) -> None:
    """Eight micro-batches to a step, as the steps before had; then an optimizer nobody knows."""
    model = made(WithoutValues)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for n in range(24):
        model(batch(n)).sum().backward()
        assert not run.status().problem or n < 8, "they are many only before the first step"
        if n % 8 == 7:
            optimizer.step()
    for n in range(33):
        model(batch(n)).sum().backward()
    assert run.status().problem == "33 training forwards since step 2, and no update"


def test_reasons_that_differ_in_their_numbers_alone_are_said_once(watch: Watch) -> None:
    """As of the activations of a U-WithoutValues, each of which layers of two widths share."""

    class Stage(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.down, self.up, self.act = nn.Linear(4, width), nn.Linear(width, 4), nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.act(self.up(self.act(self.down(x))))

    model = made(lambda: nn.Sequential(*(Stage(width) for width in (5, 6, 7, 8, 9))))
    run = watch(model, probes={"*.act": ["effective_rank_share"], "4.up": ["input_norm"]})
    train(model, sgd(model), range(2))
    run.controls.settle()
    (line,) = [line for line in str(run.status()).splitlines() if line.startswith("silent: ")]
    places = ", ".join(f"effective_rank_share at {stage}.act" for stage in range(4))
    assert line == (
        f"silent: {places} and 1 more: such as calls with "
        "5 and with 4 channels in one step have no common covariance; per_call=True keeps them "
        "apart (no value yet)"
    )


class Frozen(nn.Module):
    """Its first part is frozen, so that what it returns needs no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x))


def test_an_output_that_requires_no_gradient_is_told_in_the_midst_of_the_training(
    watch: Watch,
) -> None:
    model = made(Frozen)
    run = watch(model, probes={"first": ["output_grad_norm"], "last": ["output_grad_norm"]})
    train(model, sgd(model), range(5))
    notes = {one.module: one.note for one in run.probes()}
    assert notes == {"first": "called, but its output requires no gradient", "last": ""}
    model.get_submodule("first").requires_grad_(True)
    train(model, sgd(model), range(5, 8))
    assert {one.note for one in run.probes()} == {""}


def test_an_optimizer_that_holds_what_the_model_has_no_more_is_told(watch: Watch) -> None:
    """Of a loop in which an optimizer steps nobody wants to hear that it has none."""
    model = made(Frozen)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes={"last": ["output_norm"]})
    train(model, optimizer, range(3))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    train(model, optimizer, range(3, 60))
    problem = run.status().problem
    assert OF_OTHERS in problem
    assert "run.step()" not in problem
