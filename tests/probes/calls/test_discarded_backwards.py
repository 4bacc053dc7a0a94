"""A backward whose gradients were cleared before the update is no part of the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import grad
from torch.optim import LBFGS, Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, made, sgd
from tests.probes.oracles import column, grad_input_size, norm_of
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(6, 4)
STEPS = 4
Loop: TypeAlias = Callable[[nn.Module], Iterator[Optimizer]]


class Gan(nn.Module):
    """Two networks, called by name as everybody does."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 4))
        self.critic = nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))


def judged(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    return critic(fake).sigmoid().mean() - critic(real).sigmoid().mean()


def penalised(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    mixed = ((real + fake) / 2).requires_grad_()
    scores = critic(mixed)
    (slope,) = grad(scores, mixed, torch.ones_like(scores), create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    return critic(fake).mean() - critic(real).mean() + 10 * penalty


def gan_loop(loss: Callable[..., Tensor], model: nn.Module) -> Iterator[Optimizer]:
    """As in pytorch/examples: the critic first, then the generator through it."""
    assert isinstance(model, Gan)
    generator, critic = model.generator, model.critic
    of_generator, of_critic = sgd(generator), Adam(critic.parameters(), lr=0.01)
    for step in range(STEPS):
        critic.zero_grad()
        fake = generator(batch(100 + step))
        loss(critic, batch(step), fake.detach()).backward()
        of_critic.step()
        yield of_critic
        generator.zero_grad()
        (-critic(fake).mean()).backward()
        of_generator.step()
        yield of_generator


def arrived(layer: nn.Module) -> Callable[[], list[Tensor]]:
    """The gradients that come to the outputs of a layer; what was asked of it is forgotten."""
    found: list[Tensor] = []

    def keep(module: nn.Module, given: object, output: Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: found.append(gradient.clone()))

    layer.register_forward_hook(keep)

    def take() -> list[Tensor]:
        taken = [*found]
        found.clear()
        return taken

    return take


def play(loop: Loop, twin: nn.Module, model: nn.Module) -> None:
    """Train both alike, and see that both are left with the same bits."""
    left = []
    for one in (twin, model):
        torch.manual_seed(7)
        optimizers = {id(optimizer): optimizer for optimizer in loop(one)}
        left.append(everything(one, optimizers.values()))
    assert differing(*left) == []


@pytest.mark.parametrize(("loss", "n_calls"), [(judged, 2), (penalised, 3)])
def test_a_critic_that_is_watched_alone_keeps_nothing_of_the_generators_backward(
    loss: Callable[..., Tensor], n_calls: int, watch: Watch
) -> None:
    twin, model = made(Gan), made(Gan)
    run = watch(model.critic, probes={"2": ["output_norm", "output_grad_norm", grad_input_size]})
    run.attach("0", ["output_grad_norm"])
    wanted: list[float] = []
    take = arrived(twin.critic[2])

    def loop(one: nn.Module) -> Iterator[Optimizer]:
        for nth, optimizer in enumerate(gan_loop(loss, one)):
            if one is twin and nth % 2 == 0:  # of two gradients, of a mean of six each
                wanted.append(norm_of(*[g for g in take() if loss is judged]))
            take() if one is twin else None
            yield optimizer

    play(loop, twin, model)
    found = column(run, "2", "output_grad_norm")
    if loss is judged:
        assert found == pytest.approx(wanted, rel=1e-5)
    else:  # on paper: a penalty sends nothing through the output of the call that it is of
        assert found == pytest.approx([(2 / 6) ** 0.5] * STEPS, rel=1e-5)
    assert column(run, "2", "calls") == [n_calls] * STEPS
    n_discarded = run.series("", "discarded_backwards")
    assert n_discarded.values.tolist() == [1] * (STEPS - 1)
    assert n_discarded.step.values.tolist() == [1, 2, 3]
    assert not run.status().errors


def test_two_networks_watched_as_one_have_each_its_own_backward(watch: Watch) -> None:
    """Steps of the two optimizers take turns, and nothing is cleared in between."""
    twin, model = made(Gan), made(Gan)
    run = watch(model, probes={"critic.2": ["output_grad_norm"]})
    wanted: list[float] = []
    take = arrived(twin.critic[2])

    def loop(one: nn.Module) -> Iterator[Optimizer]:
        for optimizer in gan_loop(judged, one):
            wanted.append(norm_of(*take())) if one is twin else None
            yield optimizer

    play(loop, twin, model)
    assert column(run, "critic.2", "output_grad_norm") == pytest.approx(wanted, rel=1e-5)
    assert column(run, "critic.2", "calls") == [2, 1] * STEPS
    assert "discarded_backwards" not in run.data


# ---------------------------------------------------------------- one model, several losses


class Agent(nn.Module):
    """A trunk and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.actor, self.judge = nn.Linear(4, 5), nn.Linear(5, 3), nn.Linear(5, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(x).tanh()
        return self.actor(hidden), self.judge(hidden)


def losses(model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
    action, value = model(batch(step))
    return action.log_softmax(1)[:, 0].mean(), value.square().mean()


def both(model: nn.Module, step: int) -> None:
    """Two losses of one forward, which add up."""
    actor, judge = losses(model, step)
    actor.backward(retain_graph=True)
    judge.backward()


def surgery(model: nn.Module, step: int) -> None:
    """As PCGrad: each loss by itself, and what is made of the two by hand."""
    found: list[list[Tensor]] = []
    parts = losses(model, step)
    for part in parts:
        model.zero_grad()
        part.backward(retain_graph=True)
        found.append(
            [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        )
    for parameter, one, other in zip(model.parameters(), *found, strict=True):
        parameter.grad = one + other


def surgery_within(model: nn.Module, step: int) -> None:
    """The same, with new values for the last gradients."""
    surgery(model, step)
    made_by_hand = [p.grad for p in model.parameters()]
    model.zero_grad()
    losses(model, step)[1].backward()
    for parameter, gradient in zip(model.parameters(), made_by_hand, strict=True):
        assert gradient is not None
        if parameter.grad is None:
            parameter.grad = gradient
        else:
            parameter.grad.data = gradient


def only_the_second(model: nn.Module, step: int) -> None:
    actor, judge = losses(model, step)
    actor.backward(retain_graph=True)
    model.zero_grad()
    judge.backward()


def only_the_second_call(model: nn.Module, step: int) -> None:
    losses(model, step + 50)[1].backward()
    model.zero_grad()
    losses(model, step)[1].backward()


def one_head_cleared(model: nn.Module, step: int) -> None:
    """A part of the model starts anew; the trunk has the sum."""
    losses(model, step + 50)[0].backward()
    model.get_submodule("judge").zero_grad()
    losses(model, step)[1].backward()


UPDATES = [
    (both, [0, 1], 1, 0),
    (surgery, [0, 1], 1, 0),
    (surgery_within, [0, 1, 2], 2, 0),
    (only_the_second, [1], 1, 1),
    (only_the_second_call, [1], 1, 1),
    (one_head_cleared, [0, 1], 2, 0),
]


@pytest.mark.parametrize(
    ("update", "counting", "n_calls", "n_discarded"), UPDATES, ids=[u[0].__name__ for u in UPDATES]
)
@pytest.mark.parametrize("per_call", [False, True])
def test_of_several_losses_those_count_whose_gradients_are_there_at_the_update(
    update: Callable[[nn.Module, int], None],
    counting: Sequence[int],
    n_calls: int,
    n_discarded: int,
    per_call: bool,
    watch: Watch,
) -> None:
    """If it is none of them somebody has made something of them, and all do."""
    twin, model = made(Agent), made(Agent)
    run = watch(model, probes=None)
    run.attach("trunk", ["output_norm", "output_grad_norm", grad_input_size], per_call=per_call)
    wanted: list[float] = []
    take = arrived(twin.trunk)

    def loop(one: nn.Module) -> Iterator[Optimizer]:
        optimizer = Adam(one.parameters(), lr=0.01)
        for step in range(STEPS):
            optimizer.zero_grad()
            update(one, step)
            optimizer.step()
            if one is twin:
                gradients = take()
                wanted.append(norm_of(*[gradients[i] for i in counting]))
            yield optimizer

    play(loop, twin, model)
    places = [f"trunk[{call}]" for call in range(n_calls)] if per_call else ["trunk"]
    parts = [torch.tensor(column(run, place, "output_grad_norm")) for place in places]
    assert torch.stack(parts).norm(dim=0).tolist() == pytest.approx(wanted, rel=1e-5)
    if not per_call:
        assert column(run, "trunk", "calls") == [n_calls] * STEPS
    assert ("discarded_backwards" in run.data) == bool(n_discarded)
    if n_discarded:
        assert column(run, "(root)", "discarded_backwards") == [n_discarded] * STEPS
    assert not run.status().errors


def test_what_is_shown_before_the_update_is_what_has_come_so_far(watch: Watch) -> None:
    """And afterwards what counts, however often it is looked at."""
    model = made(Agent)
    run, optimizer = watch(model, probes={"trunk": ["input_norm"]}), sgd(model)
    only_the_second_call(model, 0)
    optimizer.step()
    shown = [column(run, "trunk", "input_norm") for _ in range(2)]
    run.close()
    assert [*shown[0], *shown[1]] == pytest.approx([norm_of(batch(0))] * 2)
    assert column(run, "trunk", "input_norm") == shown[0]


def test_optimizers_of_two_heads_each_apply_their_own(watch: Watch) -> None:
    """What is cleared for one is left for the other."""
    twin, model = made(Agent), made(Agent)
    run = watch(model, probes={("actor", "judge"): ["output_grad_norm"]})

    def loop(one: nn.Module) -> Iterator[Optimizer]:
        assert isinstance(one, Agent)
        first = sgd(nn.ModuleList([one.trunk, one.actor]))
        second = Adam(one.judge.parameters(), lr=0.01)
        for step in range(STEPS):
            actor, judge = losses(one, step)
            for optimizer, loss in ((first, actor), (second, judge)):
                optimizer.zero_grad()
                loss.backward(retain_graph=True)
                optimizer.step()
            yield from (first, second)

    play(loop, twin, model)
    for place in ("actor", "judge"):
        assert all(value > 0 for value in column(run, place, "output_grad_norm"))
        assert column(run, place, "calls") == [1] * STEPS
    assert not run.data.get("discarded_backwards", torch.zeros(1)).max() > 0


def test_each_run_of_a_closure_counts_and_what_lay_there_before_does_not(watch: Watch) -> None:
    model = made(Agent)
    run = watch(model, probes={"trunk": ["output_norm"]})
    optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=3)
    n_runs: list[int] = []

    def closure(step: int) -> Tensor:
        optimizer.zero_grad()
        loss = losses(model, step)[1]
        loss.backward()
        n_runs[step] += 1
        return loss

    for step in range(2):
        losses(model, step + 50)[0].backward()
        n_runs.append(0)
        optimizer.step(partial(closure, step))
    assert min(n_runs) > 1
    assert column(run, "trunk", "calls") == n_runs
    assert column(run, "(root)", "discarded_backwards") == [1, 1]


def test_a_step_by_hand_applies_what_is_there(watch: Watch) -> None:
    model = made(Agent)
    run: nbp.Run = watch(model, probes={"trunk": ["input_norm"]})
    only_the_second_call(model, 0)
    run.step()
    assert column(run, "trunk", "input_norm") == pytest.approx([norm_of(batch(0))])
    assert column(run, "trunk", "calls") == [1]
