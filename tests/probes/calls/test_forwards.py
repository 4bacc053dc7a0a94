"""Which calls of the model are a step's: those that a gradient came back to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import floats, loss_of, made, sgd
from tests.probes.oracles import column, norm_of
from tests.run.conftest import Watch

batch = floats(5, 4)


class Stop(Exception):
    """Breaks off a call."""


class Plain(nn.Module):
    """May break off, give a part of itself away, or keep what it is trained with."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(4, 3), nn.Linear(3, 2)
        self.error: BaseException | None = None
        self.kept: Tensor | None = None

    def forward(self, x: Tensor, headless: bool = False) -> Tensor:
        hidden = self.part(x)
        nbp.collect("largest", hidden.abs().max())
        self.kept = hidden
        if self.error is not None:
            raise self.error
        return hidden.detach() if headless else self.head(hidden)


def output_size(output: Tensor) -> Tensor:
    return output.norm()


def train(model: nn.Module, *given: Tensor) -> None:
    for one in given:
        loss_of(model(one)).backward()


def broken(model: Plain, given: Tensor, error: BaseException) -> None:
    model.error = error
    with suppress(type(error)):
        loss_of(model(given)).backward()
    model.error = None


def looked_at(model: Plain, given: Tensor) -> None:
    model(given)


def broken_backward(model: Plain, given: Tensor) -> None:
    output = model(given)
    output.register_hook(lambda gradient: _raise())
    with suppress(Stop):
        loss_of(output).backward()


def _raise() -> None:
    raise Stop


ABORTED: dict[str, Callable[[Plain, Tensor], object]] = {
    "raised": lambda model, given: broken(model, given, Stop()),
    "interrupted": lambda model, given: broken(model, given, KeyboardInterrupt()),
    "looked at": looked_at,
    "backward broken off": broken_backward,
}


@pytest.mark.parametrize("when", ["before", "between", "after"])
@pytest.mark.parametrize("kind", ABORTED)
def test_a_call_without_a_backward_leaves_no_trace_in_the_step(
    kind: str, when: str, watch: Watch
) -> None:
    """Not even its NaN; the micro-batches beside it are all there."""
    model = made(Plain)
    quantities = ["input_norm", "output_norm", output_size, "output_grad_norm"]
    run, optimizer = watch(model, probes={"part": quantities}), sgd(model)
    for step in range(2):
        optimizer.zero_grad()
        for micro in range(2):
            if micro == {"before": 0, "between": 1, "after": 2}[when]:
                ABORTED[kind](model, torch.full((5, 4), torch.nan))
                optimizer.zero_grad() if micro == 0 else None
            train(model, batch(2 * step + micro))
        if when == "after":
            ABORTED[kind](model, torch.full((5, 4), torch.nan))
        with torch.no_grad():  # broken-off backwards have left what they left
            for value in model.parameters():
                value.grad = torch.zeros_like(value)
        optimizer.step()
    with torch.no_grad():
        outputs = [model.part(batch(i)) for i in range(4)]
    for step in range(2):
        mine = slice(2 * step, 2 * step + 2)
        given = [batch(i) for i in range(4)][mine]
        found = run.data.sel(module="part", step=step)
        assert float(found.input_norm) == pytest.approx(norm_of(*given), rel=1e-5)
        assert float(found.output_norm) == pytest.approx(norm_of(*outputs[mine]), rel=1e-5)
        mean = np.mean([norm_of(one) for one in outputs[mine]])
        assert float(found.output_size) == pytest.approx(mean, rel=1e-5)
        largest = np.mean([float(one.abs().max()) for one in outputs[mine]])
        assert float(run.series("", "largest")[step]) == pytest.approx(largest, rel=1e-5)
        assert np.isfinite(float(found.output_grad_norm))
        assert int(found.calls) == 2
    assert not run.alerts
    assert not run.status().errors


def test_micro_batches_are_numbered_as_if_what_broke_off_had_not_been(watch: Watch) -> None:
    model = made(Plain)
    run, optimizer = watch(model, probes=None), sgd(model)
    run.attach("part", ["input_norm", output_size], per_call=True)
    train(model, batch(0))
    broken(model, batch(9), Stop())
    looked_at(model, batch(9))
    train(model, batch(1), batch(2))
    with torch.no_grad():
        sizes = [norm_of(model.part(batch(i))) for i in range(3)]
    optimizer.step()
    for call in range(3):
        place = f"part[{call}]"
        assert column(run, place, "input_norm") == pytest.approx([norm_of(batch(call))])
        assert column(run, place, "output_size") == pytest.approx([sizes[call]])
    assert "part[3]" not in run.data.module.values


def test_a_call_that_raised_counts_if_something_in_it_is_trained(watch: Watch) -> None:
    """Some raise to stop a model early, and train with what they have by then."""
    model = made(Plain)
    run, optimizer = watch(model, probes={"part": ["input_norm", "output_grad_norm"]}), sgd(model)
    broken(model, batch(0), Stop())
    assert model.kept is not None
    loss_of(model.kept).backward()
    train(model, batch(1))
    optimizer.step()
    assert column(run, "part", "input_norm") == pytest.approx([norm_of(batch(0), batch(1))])
    assert column(run, "part", "calls") == [2]


@pytest.mark.parametrize("is_broken", [False, True])
def test_where_no_backward_is_seen_all_calls_that_returned_count(
    is_broken: bool, watch: Watch
) -> None:
    """Evolution strategies, forward-mode learning, gradients from elsewhere."""
    model = made(Plain)
    run, optimizer = watch(model, probes={"part": ["input_norm"]}), sgd(model)
    if is_broken:
        broken(model, batch(9), Stop())
    model(batch(0))
    model(batch(1))
    for value in model.parameters():
        value.grad = torch.ones_like(value)
    optimizer.step()
    assert column(run, "part", "input_norm") == pytest.approx([norm_of(batch(0), batch(1))])
    assert column(run, "part", "calls") == [2]


def test_a_call_to_which_nothing_can_come_back_counts(watch: Watch) -> None:
    """Features of a frozen part, beside a call that is trained."""
    model = made(Plain)
    run, optimizer = watch(model, probes={"part": ["input_norm"]}), sgd(model)
    model(batch(0), headless=True)
    train(model, batch(1))
    optimizer.step()
    assert column(run, "part", "input_norm") == pytest.approx([norm_of(batch(0), batch(1))])


def test_a_part_that_is_called_alone_counts_beside_the_model(watch: Watch) -> None:
    model = made(Plain)
    run, optimizer = watch(model, probes={"part": ["input_norm"]}), sgd(model)
    model.part(batch(0))
    looked_at(model, batch(9))
    train(model, batch(1))
    optimizer.step()
    assert column(run, "part", "input_norm") == pytest.approx([norm_of(batch(0), batch(1))])
    assert column(run, "part", "calls") == [2]


def test_of_a_generator_the_pictures_for_the_discriminator_are_not_pooled(watch: Watch) -> None:
    """They are detached; what comes back to D for the generator is cleared before D's step."""
    generator, critic = made(Plain), made(lambda: nn.Linear(2, 1))
    run = watch(generator, probes={"part": ["input_norm"]})
    other = watch(critic, probes={"": ["input_norm"]})
    optimizers, judged = [sgd(critic), sgd(generator)], []
    for step in range(3):
        noise = [batch(2 * step), batch(2 * step + 1)]
        optimizers[0].zero_grad()
        judged.append(generator(noise[0]).detach())
        critic(judged[-1]).mean().backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        (-critic(generator(noise[1])).mean()).backward()
        optimizers[1].step()
    given = [norm_of(batch(2 * step + 1)) for step in range(3)]
    assert column(run, "part", "input_norm") == pytest.approx(given)
    assert column(run, "part", "calls") == [1, 1, 1]
    assert column(other, "(root)", "calls") == [1, 1, 1]
    given = [norm_of(batch) for batch in judged]
    assert column(other, "(root)", "input_norm") == pytest.approx(given)


def test_while_a_step_is_open_what_is_shown_of_it_is_what_counts(watch: Watch) -> None:
    model = made(Plain)
    run, optimizer = watch(model, probes={"part": ["input_norm"]}), sgd(model)
    looked_at(model, batch(9))
    train(model, batch(0), batch(1))
    optimizer.step()
    shown = [column(run, "part", "input_norm")[0] for _ in range(2)]
    train(model, batch(2))
    optimizer.step()
    shown.append(column(run, "part", "input_norm")[0])
    assert shown == pytest.approx([norm_of(batch(0), batch(1))] * 3)
