"""Which backward counts: what accumulates, or what is returned where nothing accumulates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import grad

import notebook_probe as nbp
from tests.models import floats, made, sgd
from tests.probes.oracles import Noted, column, grad_input_size, norm_of, same_column
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(32, 3)
STEPS = range(3)
COLUMNS = ["output_grad_norm", grad_input_size]

Loss: TypeAlias = Callable[[nn.Module, int], Tensor]


class Critic(Noted):
    """Keeps its hidden values, and what enters the layer behind them, where a test can ask."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)
        self.hidden: list[Tensor] = []
        self.entering: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.hidden.append(self.first(x))
        self.entering.append(self.hidden[-1].tanh())
        return self.last(self.entering[-1])


def critic_loss(critic: nn.Module, step: int) -> Tensor:
    """As in WGAN-GP: two calls, and a gradient of one of them in the loss."""
    between = batch(step + 50).requires_grad_()
    fake, mixed = critic(batch(step)), critic(between)
    (slope,) = grad(mixed, between, torch.ones_like(mixed), create_graph=True)
    return fake.mean() + 10 * (slope.norm(dim=1) - 1).square().mean()


def plain_loss(model: nn.Module, step: int) -> Tensor:
    return model(batch(step)).square().mean()


def wanted_of(loss: Loss, critic: Critic, step: int) -> tuple[float, float]:
    """Norms of the derivatives of the whole loss, worked out by a twin.

    A penalty sends nothing through the last layer of the call that it is of.
    """
    critic.hidden, critic.entering = [], []
    total = loss(critic, step)
    hidden = grad(total, critic.hidden, retain_graph=True, allow_unused=True)
    (entering,) = grad(total, critic.entering[:1])
    return norm_of(*(g for g in hidden if g is not None)), norm_of(entering)


def trained(
    update: Callable[[nn.Module, int], object], loss: Loss, watch: Watch
) -> tuple[nbp.Run, list[tuple[float, float]]]:
    """A run of some steps, in each of which ``update`` leaves gradients; and what is expected."""
    twin, model, wanted = made(Critic), made(Critic), []
    run = watch(model, probes={"first": ["output_grad_norm", "grad_norm"]})
    run.attach("last", [grad_input_size])
    optimizers = [sgd(twin), sgd(model)]
    for step in STEPS:
        wanted.append(wanted_of(loss, twin, step))
        for one, optimizer in zip((twin, model), optimizers, strict=True):
            optimizer.zero_grad()
            update(one, step)
            optimizer.step()
            one.hidden, one.entering = [], []
    assert differing(everything(twin, optimizers[:1]), everything(model, optimizers[1:])) == []
    assert not run.status().errors
    return run, wanted


def check(run: nbp.Run, wanted: list[tuple[float, float]], n_calls: int, n_inner: int) -> None:
    same_column(run, "first", "output_grad_norm", [one for one, _ in wanted])
    same_column(run, "last", "grad_input_size", [other for _, other in wanted])
    assert column(run, "first", "calls") == [n_calls] * len(STEPS)
    assert ("inner_backwards" in run.data) == bool(n_inner)
    if n_inner:
        assert run.series("", "inner_backwards").values.tolist() == [n_inner] * len(STEPS)


def test_of_a_wgan_with_gradient_penalty_only_the_backward_of_its_loss_counts(
    watch: Watch,
) -> None:
    run, wanted = trained(lambda m, step: critic_loss(m, step).backward(), critic_loss, watch)
    check(run, wanted, n_calls=2, n_inner=1)


def test_the_gradient_of_a_penalised_critic_is_as_on_paper(watch: Watch) -> None:
    """Of a mean over 32 the gradient at the output is 1/32 each; that of a penalty on ∂/∂x, 0."""
    critic = made(Critic)
    run, optimizer = watch(critic, probes={"last": ["output_grad_norm"]}), sgd(critic)
    critic_loss(critic, 0).backward()
    optimizer.step()
    assert column(run, "last", "output_grad_norm") == pytest.approx([32**-0.5], rel=1e-6)
    assert column(run, "last", "calls") == [2]


# ---------------------------------------------------------------- what stands beside the loss


def attack(model: nn.Module, step: int) -> None:
    """Towards an input alone."""
    x = batch(step + 70).requires_grad_()
    grad(plain_loss(model, step + 70) + model(x).sum(), x)


def hessian_product(model: nn.Module, step: int) -> None:
    parameters = [*model.parameters()]
    slopes = grad(plain_loss(model, step), parameters, create_graph=True)
    grad(slopes, parameters, [torch.ones_like(p) for p in parameters])


def first_order_inner_loop(model: nn.Module, step: int) -> None:
    grad(plain_loss(model, step + 80), [*model.parameters()])


def hidden_gradient(model: nn.Module, step: int) -> None:
    """As Grad-CAM asks for it."""
    output = model(batch(step))
    assert isinstance(model, Critic)
    grad(output.sum(), model.hidden[-1])


@pytest.mark.parametrize(
    ("analyse", "n_inner"),
    [(attack, 1), (hessian_product, 2), (first_order_inner_loop, 1), (hidden_gradient, 1)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_gradients_that_are_returned_do_not_count_beside_those_that_accumulate(
    analyse: Any, n_inner: int, watch: Watch
) -> None:
    for is_first in (True, False):

        def update(model: nn.Module, step: int, is_first: bool = is_first) -> None:
            if is_first:
                analyse(model, step)
            plain_loss(model, step).backward()
            if not is_first:
                analyse(model, step)

        run, wanted = trained(update, plain_loss, watch)
        found = run.series("", "inner_backwards").values.tolist()
        assert found == [n_inner] * len(STEPS)
        same_column(run, "first", "output_grad_norm", [one for one, _ in wanted])
        same_column(run, "last", "grad_input_size", [other for _, other in wanted])


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_backward_whose_gradients_have_a_graph_counts_and_what_is_made_of_them_does_not(
    watch: Watch,
) -> None:
    """As AdaHessian does it."""

    def update(model: nn.Module, step: int) -> None:
        plain_loss(model, step).backward(create_graph=True)
        parameters = [*model.parameters()]
        slopes = [p.grad for p in parameters if p.grad is not None]
        grad(slopes, parameters, [torch.ones_like(p) for p in parameters])
        for parameter in parameters:
            parameter.grad = parameter.grad.detach() if parameter.grad is not None else None

    run, wanted = trained(update, plain_loss, watch)
    check(run, wanted, n_calls=1, n_inner=1)


def _applied(model: nn.Module, loss: Tensor) -> None:
    """Gradients that a loop applies itself."""
    parameters = [*model.parameters()]
    for parameter, slope in zip(parameters, grad(loss, parameters), strict=True):
        parameter.grad = slope


def test_where_nothing_accumulates_returned_gradients_are_the_trainings(watch: Watch) -> None:
    run, wanted = trained(lambda m, s: _applied(m, critic_loss(m, s)), critic_loss, watch)
    check(run, wanted, n_calls=2, n_inner=1)


def test_a_backward_into_some_parameters_alone_counts(watch: Watch) -> None:
    def update(model: nn.Module, step: int) -> None:
        parameters = [model.get_parameter("first.weight")]
        torch.autograd.backward(plain_loss(model, step), inputs=parameters)

    run, wanted = trained(update, plain_loss, watch)
    check(run, wanted, n_calls=1, n_inner=0)


def test_while_a_step_is_open_it_shows_what_it_will_have(watch: Watch) -> None:
    """Each time it is looked at, and its record is the same in the end."""
    model = made(Critic)
    run, optimizer = watch(model, probes={"first": ["output_grad_norm"]}), sgd(model)
    (wanted, _), shown = wanted_of(plain_loss, made(Critic), 0), []
    _applied(model, plain_loss(model, 0))
    optimizer.step()
    for _ in range(2):
        shown += column(run, "first", "output_grad_norm")
    run.close()
    assert [*shown, *column(run, "first", "output_grad_norm")] == pytest.approx([wanted] * 3)


def test_quantities_that_keep_calls_apart_keep_returned_gradients_apart(watch: Watch) -> None:
    model, twin = made(Critic), made(Critic)
    run = watch(model, probes=None)
    run.attach("first", "output_grad_norm", per_call=True)
    optimizer = sgd(model)
    losses = [plain_loss(one, 0) + plain_loss(one, 1) for one in (twin, model)]
    wanted = [norm_of(g) for g in grad(losses[0], twin.hidden)]
    _applied(model, losses[1])
    optimizer.step()
    for call, value in enumerate(wanted):
        assert column(run, f"first[{call}]", "output_grad_norm") == pytest.approx([value])
