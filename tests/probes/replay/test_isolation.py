"""A model is run once more between two steps, where that is hard to do without a trace."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim import LBFGS, SGD, Adam, Optimizer

from notebook_probe.errors import UnreadableError
from tests.models import (
    ConvNet,
    Encoder,
    Heads,
    Tied,
    floats,
    loss_of,
    made,
    mean_square,
    mlp,
    words,
)
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)
AGAIN: dict[Any, Any] = {"": ["sharpness", "tic_trace", "path_shares"], "*": ["feature_drift"]}


def alike(
    build: Callable[[], nn.Module],
    train: Callable[[nn.Module], Optimizer],
    watch: Watch,
    given: Any = None,
) -> Any:
    """Train a watched and an unwatched model; both must end equal. Returns the run."""
    plain, model = made(build), made(build)
    run = watch(model, probes=AGAIN)
    run.probe_batch(batch(99) if given is None else given, None, mean_square)
    left = [everything(plain, [made_alike(train, plain)])]
    left.append(everything(model, [made_alike(train, model)]))
    assert differing(*left) == []
    run.controls.settle()
    assert not run.status().errors
    assert np.isfinite(run.series("", "sharpness")).all()
    return run


def made_alike(train: Callable[[nn.Module], Optimizer], model: nn.Module) -> Optimizer:
    torch.default_generator.manual_seed(7)
    return train(model)


def plainly(given: Callable[[int], Tensor]) -> Callable[[nn.Module], Optimizer]:
    def train(model: nn.Module) -> Optimizer:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model(given(step))).backward()
            optimizer.step()
        return optimizer

    return train


def test_a_spectral_norm_is_not_iterated_on(watch: Watch) -> None:
    def build() -> nn.Module:
        return nn.Sequential(spectral_norm(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 2))

    alike(build, plainly(batch), watch)


def test_the_old_spectral_norm_whose_weight_is_an_attribute(watch: Watch) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 8)), nn.Linear(8, 2))

    alike(build, plainly(batch), watch)


def test_tied_weights_are_one_parameter(watch: Watch) -> None:
    run = alike(Tied, plainly(words), watch, words(9))
    assert run.data.sizes["step"] == 3


@pytest.mark.slow
def test_attention_and_dropout(watch: Watch) -> None:
    alike(Encoder, plainly(words), watch, words(9))


def test_a_dict_is_handed_over_as_keywords(watch: Watch) -> None:
    alike(Heads, plainly(batch), watch, {"x": batch(9)})


def test_closures_that_run_many_times(watch: Watch) -> None:
    def train(model: nn.Module) -> Optimizer:
        optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=4)
        for step in range(2):

            def closure(step: int = step) -> Tensor:
                optimizer.zero_grad()
                loss = loss_of(model(batch(step)))
                loss.backward()
                return loss

            optimizer.step(closure)
        return optimizer

    run = alike(mlp, train, watch)
    assert len(run.series("", "sharpness")) == 2


def test_steps_closed_by_hand(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=AGAIN)
    run.probe_batch(batch(9), None, mean_square)
    for step in range(3):
        loss_of(model(batch(step))).backward()
        run.step()
        model.zero_grad()
    assert len(run.series("", "sharpness")) == 3


class Stop(BaseException):
    """As the stop button: no Exception."""


def test_an_interrupt_passes_and_leaves_no_trace(watch: Watch) -> None:
    model, plain = made(ConvNet), made(ConvNet)
    images, interrupts = floats(4, 1, 6, 6), False

    def loss_fn(output: Any, targets: Any) -> Tensor:
        if interrupts:
            raise Stop
        return loss_of(output)

    run = watch(model, probes={"": ["sharpness", "output_norm"]})
    run.probe_batch(images(9), None, loss_fn)
    interrupts = True
    with pytest.raises(Stop):
        model(images(0))
    interrupts = False
    for each in (plain, model):
        optimizer = SGD(each.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(each(images(step))).backward()
            optimizer.step()
    assert differing(everything(plain), everything(model)) == []
    assert all(module.training for module in model.modules())
    assert run.series("", "output_norm").step.values.tolist() == [0, 1]


def test_no_other_run_takes_our_calls_for_its_own(watch: Watch) -> None:
    """The loss is another watched model's; the model is a part of a third; a second run watches."""
    critic, inner = made(mlp), made(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    whole = nn.Sequential(inner, nn.Linear(4, 2))
    others = [watch(one, probes={"": ["output_norm"]}) for one in (critic, whole, inner)]
    run = watch(inner, probes=AGAIN)
    run.probe_batch(batch(9), None, lambda output, targets: critic(output).square().mean())
    optimizers = [SGD(one.parameters(), lr=0.1) for one in (critic, whole)]
    for step in range(3):
        critic(inner(batch(step)).detach()).sum().backward()
        optimizers[0].step()
        whole(batch(step)).sum().backward()
        optimizers[1].step()
    calls = [one.series("", "calls").values.tolist() for one in others]
    assert calls == [[1, 1, 1]] * 3, "no gradient comes back to the call for the critic's sake"
    assert len(run.series("", "sharpness")) == len(run.series("0", "feature_drift")) == 3


def test_a_batch_given_while_another_thread_trains_is_used_from_its_next_step_on(
    watch: Watch,
) -> None:
    model, other = made(mlp), made(mlp)
    watch(other)  # which the thread has never heard of
    run = watch(model, probes=AGAIN)
    begun, given = threading.Event(), threading.Event()

    def train() -> None:
        optimizer = SGD(model.parameters(), lr=0.1)
        for step in range(4):
            loss_of(model(batch(step))).backward()
            optimizer.step()
            if step == 1:
                begun.set()
                given.wait()

    background = run.train_in_background(train)
    begun.wait()
    run.probe_batch(batch(9), None, mean_square)
    given.set()
    background.wait()
    assert run.series("", "sharpness").step.values.tolist() == [2, 3]


def test_the_status_tells_what_takes_so_long(watch: Watch) -> None:
    told: list[str] = []

    def loss_fn(output: Any, targets: Any) -> Tensor:
        told.append(run.status().progress)
        return loss_of(output)

    model = made(mlp)
    run = watch(model, probes={"": ["sharpness", "loss_landscape_1d"], "0": ["feature_drift"]})
    run.probe_batch(batch(9), None, loss_fn)
    assert told.pop() == ""
    loss_of(model(batch(0))).backward()
    assert told[0] == "sharpness at (root): 1 losses, 0 Hessian products"
    assert told[-1].startswith("loss_landscape_1d at (root): 2")
    assert run.status().progress == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"loss_fn": "mse"}, "probe_batch\\(loss_fn='mse'\\): a function"),
        ({"loss_fn": lambda y, t: y}, "returned a tensor of shape \\(5, 2\\)"),
        ({"loss_fn": lambda y, t: 1.0}, "returned a float"),
    ],
)
def test_a_loss_that_is_no_number_is_refused_at_once(
    wrong: dict[str, Any], said: str, watch: Watch
) -> None:
    run = watch(made(mlp), probes=AGAIN)
    with pytest.raises(ValueError, match=said):
        run.probe_batch(batch(0), None, **wrong)


def test_lazy_parameters_are_refused_until_they_have_a_shape(watch: Watch) -> None:
    model = made(lambda: nn.Sequential(nn.LazyLinear(6), nn.Tanh(), nn.LazyBatchNorm1d()))
    run = watch(model, probes=AGAIN)
    with pytest.raises(UnreadableError, match="call the model once first"):
        run.probe_batch(batch(9), None, mean_square)
    assert type(model[0]) is nn.LazyLinear
    model(batch(0)).sum().backward()
    run.step()
    run.probe_batch(batch(9), None, mean_square)
    model(batch(1)).sum().backward()
    run.step()
    assert run.series("", "sharpness").step.values.tolist() == [1]


def test_a_module_that_is_gone_leaves_the_others_their_values(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"1": ["feature_drift"], "2": ["feature_drift", "sharpness"]})
    run.probe_batch(batch(9), None, mean_square)
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in range(3):
        if step == 1:
            del model[1]
            model[1] = nn.Linear(8, 2)
            model.append(nn.Linear(2, 2))
        loss_of(model(batch(step))).backward()
        optimizer.step()
    assert not run.status().errors
    assert len(run.series("2", "feature_drift")) == 3


def test_what_is_frozen_has_no_curvature_and_says_so(watch: Watch) -> None:
    model = made(mlp)
    model[0].requires_grad_(False)
    run = watch(model, probes={"0": ["sharpness"], "2": ["sharpness"]})
    run.probe_batch(batch(9), None, mean_square)
    plainly(batch)(model)
    run.controls.settle()
    [silent] = run.status().silent
    assert (silent.module, silent.note) == ("0", "nothing there requires a gradient")
    assert len(run.series("2", "sharpness")) == 3


@pytest.fixture
def on_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_a_model_in_float64_is_measured_in_it(on_double: None, watch: Watch) -> None:
    model = made(lambda: nn.Linear(2, 1, bias=False))
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    run = watch(model, probes={"": ["sharpness", "hessian_trace"]})
    run.probe_batch(x, torch.zeros(3, 1), nn.functional.mse_loss)
    model(x).sum().backward()
    SGD(model.parameters(), lr=0.1).step()
    hessian = 2 * x.numpy().T @ x.numpy() / 3
    largest = np.linalg.eigvalsh(hessian)[-1]
    assert float(run.series("", "sharpness")[0]) == pytest.approx(largest, rel=1e-6)
    assert float(run.series("", "hessian_trace")[0]) == pytest.approx(np.trace(hessian), rel=1e-6)


class Remembering(nn.Module):
    """Keeps what it has seen in containers, tensors and generators that are plain attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.seen: list[int] = []
        self.alias = [0]
        self.counts: dict[str, Any] = {"calls": 0, "sizes": self.alias}
        self.average = torch.zeros(2)
        self.recent = (deque([0.0], maxlen=2), {1})
        self.draws = torch.Generator().manual_seed(3)
        self.noise = np.random.default_rng(3)

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        self.counts["calls"] += 1
        self.alias[0] += len(x)
        self.recent[0].append(float(self.noise.random()))
        self.recent[1].add(len(self.seen))
        y: Tensor = self.linear(x)
        self.average.lerp_(y.detach().mean(0), 0.1)
        scale = 1 + self.counts["sizes"][0] / 100 + self.recent[0][-1] + len(self.recent[1])
        return y * scale + self.average + torch.randn(2, generator=self.draws)


def test_what_a_module_keeps_in_attributes_of_its_own_stays(watch: Watch) -> None:
    plain, model = made(Remembering), made(Remembering)
    kept = {name: id(value) for name, value in vars(model).items()}
    run = watch(model, probes=AGAIN)
    run.probe_batch(batch(9), None, mean_square)
    ends = [everything(one, [plainly(batch)(one)]) for one in (plain, model)]
    assert differing(*ends) == []
    for name in ("seen", "counts", "alias", "recent"):
        assert getattr(model, name) == getattr(plain, name)
    assert torch.equal(model.average, plain.average)
    assert {name: id(value) for name, value in vars(model).items()} == kept
    run.controls.settle()
    assert not run.status().errors


class PartlyMeta(nn.Module):
    """Parts of a model that are never called need no values."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.unused = nn.Linear(4, 2, device="meta")

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x)
        return y


def test_parts_on_the_meta_device_are_left_alone_and_a_batch_there_is_refused(
    watch: Watch,
) -> None:
    model = made(PartlyMeta)
    run = watch(model, probes={"linear": ["sharpness"]})
    with pytest.raises(ValueError, match="tensors on the device 'meta' hold no values"):
        run.probe_batch(torch.empty(5, 4, device="meta"), None, mean_square)
    run.probe_batch(batch(9), None, mean_square)
    loss_of(model(batch(0))).backward()
    SGD(model.linear.parameters(), lr=0.1).step()
    assert len(run.series("linear", "sharpness")) == 1


ODD: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "complex": (lambda x: torch.complex(x, x.flip(0)), 1.0),
    "one number": (lambda x: x.sum(), np.nan),
    "nothing": (lambda x: x[:0], np.nan),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_outputs_are_compared_or_missing(kind: str, watch: Watch) -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ODD[kind][0](x)

    model = nn.Sequential(nn.Linear(4, 4), Odd())
    run = watch(model, probes={"1": ["cka_to_reference"]})
    run.probe_batch(batch(9), None, lambda output, _: output.abs().sum())
    loss_of(model(batch(0)).abs()).backward()
    SGD(model.parameters(), lr=0.1).step()
    assert float(run.series("1", "cka_to_reference")[0]) == pytest.approx(ODD[kind][1], nan_ok=True)
    assert not run.status().errors


def test_a_sparse_gradient_is_a_gradient(watch: Watch) -> None:
    found = []
    for sparse in (True, False):
        model = made(partial(nn.Embedding, 7, 3, sparse=sparse))
        run = watch(model, probes={"": ["sharpness", "sam_sharpness"]})
        run.probe_batch(torch.arange(5), None, lambda output, _: output.pow(4).sum())
        model(torch.arange(5)).sum().backward()
        SGD(model.parameters(), lr=0.1).step()
        found.append([float(run.series("", name)[0]) for name in ("sharpness", "sam_sharpness")])
        assert not run.status().errors
    assert found[0] == pytest.approx(found[1], rel=1e-5)
