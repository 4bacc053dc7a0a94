"""Tracers, exporters and function transforms: what they run is no training, and comes out equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.optim import Adam, Optimizer

from notebook_probe.errors import NotApplicableError
from tests.models import floats, loss_of, made, mlp, sgd, train, train_step
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.probes.parity import bits, differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated"),
]

batch = floats(5, 4)
given = batch(9)


def values_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in model.named_parameters()}


def called(model: nn.Module, values: dict[str, Tensor]) -> Callable[..., Tensor]:
    return lambda x: torch.func.functional_call(model, values, (x,))


def traced(model: nn.Module) -> Any:
    return torch.jit.trace(model, given, check_trace=False)(given)


def symbolic(model: nn.Module) -> Any:
    with torch.no_grad():  # a graph module calls the very same layers: that is no tracing
        return torch.fx.symbolic_trace(model)(given)


def made_fx(model: nn.Module) -> Any:
    return make_fx(called(model, values_of(model)))(given)(given)


def exported(model: nn.Module) -> Any:
    with torch.no_grad():
        return torch.export.export(model, (given,)).module()(given)


def exported_strictly(model: nn.Module) -> Any:
    with torch.no_grad():
        return torch.export.export(model, (given,), strict=True).module()(given)


def exported_for_training(model: nn.Module) -> Any:
    program = torch.export.export(model, (given,))
    return list(program.state_dict.values())


def functional_without_gradients(model: nn.Module) -> Any:
    with torch.no_grad():
        return called(model, values_of(model))(given)


def functional(model: nn.Module) -> Any:
    return called(model, values_of(model))(given)


def mapped(model: nn.Module) -> Any:
    return torch.vmap(called(model, values_of(model)))(given)


def ensemble(model: nn.Module) -> Any:
    stacked = {name: torch.stack([v, 2 * v]) for name, v in values_of(model).items()}
    run = torch.vmap(lambda values, x: torch.func.functional_call(model, values, (x,)), (0, None))
    return run(stacked, given)


def gradients(model: nn.Module) -> Any:
    loss = torch.func.grad(
        lambda values: torch.func.functional_call(model, values, (given,)).square().sum()
    )
    return list(loss(values_of(model)).values())


def per_sample_gradients(model: nn.Module) -> Any:
    def loss(values: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(model, values, (x,)).square().sum()

    found = torch.vmap(torch.func.grad(loss), (None, 0))(values_of(model), given)
    return list(found.values())


def directional(model: nn.Module) -> Any:
    return torch.func.jvp(called(model, values_of(model)), (given,), (torch.ones_like(given),))


def jacobian(model: nn.Module) -> Any:
    return torch.func.jacrev(called(model, values_of(model)))(given)


def curvature(model: nn.Module) -> Any:
    return torch.func.hessian(lambda x: called(model, values_of(model))(x).square().sum())(given)


def faked(model: nn.Module) -> Any:
    """Shapes without values, as memory planners want them."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes: dict[str, Tensor] = {
            name: mode.from_tensor(value) for name, value in values_of(model).items()
        }
        output = torch.func.functional_call(model, fakes, (mode.from_tensor(given),))
    return torch.tensor(output.shape)


TRANSFORMS: list[Callable[[nn.Module], Any]] = [
    traced,
    symbolic,
    exported,
    exported_strictly,
    exported_for_training,
    functional_without_gradients,
    mapped,
    ensemble,
    gradients,
    per_sample_gradients,
    directional,
    jacobian,
    curvature,
]


def all_bits(value: Any) -> list[bytes]:
    tensors = [value] if isinstance(value, Tensor) else list(value)
    return [bits(tensor) for tensor in tensors]


def check_transform(transform: Callable[[nn.Module], Any], watch: Watch) -> None:
    results: list[list[bytes]] = []

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        """Between the backward and the step of the second batch; the twin stays out of it."""
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            if step == 1 and diary.alone:
                with torch.random.fork_rng():
                    unhooked = mlp()
                unhooked.load_state_dict(model.state_dict())
                results.append(all_bits(transform(unhooked)))
            elif step == 1:
                results.append(all_bits(transform(model)))
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert results[0] == results[1]
    assert not run.status().errors
    assert not run.status().problem


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda f: f.__name__)
def test_a_transform_of_a_watched_model_is_not_measured(
    transform: Callable[[nn.Module], Any], watch: Watch
) -> None:
    """Its result equals that of a model nobody watches, and the open step stays what it was."""
    check_transform(transform, watch)


@pytest.mark.parametrize("transform", [made_fx, faked], ids=lambda f: f.__name__)
def test_a_trace_below_the_hooks_is_not_measured(
    transform: Callable[[nn.Module], Any], watch: Watch
) -> None:
    """Tracers that stand in for tensors: what the hooks are given has no values of its own."""
    check_transform(transform, watch)


def test_a_functional_call_with_other_weights_is_a_call_of_the_model(watch: Watch) -> None:
    """As in meta-learning: what it computes belongs to the open step, whatever stands in it."""
    pooled: list[float] = []

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            output = model(batch(step))
            loss_of(output).backward()
            if step == 1:
                halved = {name: value / 2 for name, value in values_of(model).items()}
                inner = called(model, halved)(given)
                pooled[:] = [norm(numbers([output, inner]))]
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert float(run.series("2", "output_norm")[1]) == pytest.approx(pooled[0], rel=1e-5)


@pytest.mark.parametrize("transform", [*TRANSFORMS, made_fx, faked], ids=lambda f: f.__name__)
def test_a_transform_before_the_first_step_leaves_no_step_behind(
    transform: Callable[[nn.Module], Any], watch: Watch
) -> None:
    model = made(mlp)
    run = watch(model)
    transform(model)
    assert run.status().step == 0
    train(model, sgd(model), batch, range(2))
    assert run.data.step.values.tolist() == [0, 1]


# ---------------------------------------------------------------- scripts


def test_a_model_can_be_scripted_when_its_run_is_closed(watch: Watch) -> None:
    """torch's scripting refuses every hook that is not scripted itself."""
    model, plain = made(mlp), made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    train_step(plain, sgd(plain), batch(0))
    run.close()
    assert bits(torch.jit.script(model)(given)) == bits(torch.jit.script(plain)(given))


class WithScript(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.script = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.script(self.body(x)))


def test_a_scripted_part_is_left_out_and_seen_from_its_parent(watch: Watch) -> None:
    alone, model = made(WithScript), made(WithScript)
    names = ["output_norm", "output_grad_norm"]
    run = watch(model, probes={"": names, "body": names, "head": ["input_norm"]})
    sizes, inputs = [], []
    mine, other = sgd(model), sgd(alone)
    for step in range(3):
        other.zero_grad()
        output = alone(batch(step))
        sizes.append(norm(numbers([output])))
        inputs.append(norm(numbers([alone.script(alone.body(batch(step)))])))
        loss_of(output).backward()
        other.step()
        train_step(model, mine, batch(step))
    assert differing(everything(alone), everything(model)) == []
    np.testing.assert_allclose(run.series("", "output_norm"), sizes, rtol=1e-5)
    np.testing.assert_allclose(run.series("head", "input_norm"), inputs, rtol=1e-5)
    with pytest.raises(NotApplicableError, match="is scripted and takes no hooks"):
        run.attach("script", "output_norm")


def test_the_gradient_of_the_parent_has_the_scripted_part_in_it(watch: Watch) -> None:
    """The record never leaves parameters out in silence."""
    model = made(WithScript)
    run = watch(model, probes={"": ["grad_norm"], "script.0.weight": ["grad_norm"]})
    train_step(model, sgd(model), batch(0))
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert "script.0.weight" in gradients
    everything_below = norm(numbers(gradients.values()))
    assert float(run.series("", "grad_norm")[0]) == pytest.approx(everything_below, rel=1e-5)
    alone = norm(numbers([gradients["script.0.weight"]]))
    found = float(run.series("script.0.weight", "grad_norm")[0])
    assert found == pytest.approx(alone, rel=1e-5)


# ---------------------------------------------------------------- fused inference


def test_evaluation_of_a_watched_encoder_works_though_torch_leaves_its_fast_path(
    watch: Watch,
) -> None:
    """Any hook makes torch compute the layer step by step: equal but for rounding.

    When the run is closed the fast path is back, bit for bit.
    """

    def build() -> nn.Module:
        return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    alone, model = made(build), made(build)
    sequences = floats(3, 5, 8)
    run = watch(model, probes={"linear1": ["output_norm"], "self_attn": ["output_norm"]})
    for each in (alone, model):
        train(each, sgd(each), sequences, range(2))
    assert differing(everything(alone), everything(model)) == []

    def evaluated(each: nn.Module) -> Tensor:
        each.eval()
        with torch.no_grad():
            return each(sequences(9))

    torch.testing.assert_close(evaluated(model), evaluated(alone), rtol=1e-5, atol=1e-6)
    assert run.data.step.values.tolist() == [0, 1]
    run.close()
    assert bits(evaluated(model)) == bits(evaluated(alone))
