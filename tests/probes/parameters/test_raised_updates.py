"""Optimizer steps that raise, and a training that goes on: an attempt is no step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, adam

from tests.models import floats, loss_of, made, mlp
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)
RAISES_AT = 2
N = 5


class OutOfMemoryError(RuntimeError):
    """Stands for torch's own."""


def fail(*_: Any, **__: Any) -> None:
    raise OutOfMemoryError


Attempt = Callable[[nn.Module, Optimizer, Tensor], float]


def attempt(model: nn.Module, optimizer: Optimizer, given: Tensor) -> float:
    optimizer.zero_grad()
    loss = loss_of(model(given))
    loss.backward()
    optimizer.step()
    return loss.item()


def attempt_in_closure(model: nn.Module, optimizer: Optimizer, given: Tensor) -> float:
    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model(given))
        loss.backward()
        return loss.item()

    return float(optimizer.step(closure))


def train(
    once: Attempt,
    model: nn.Module,
    optimizer: Optimizer,
    where: tuple[Any, str],
    patch: pytest.MonkeyPatch,
    error: type[BaseException] = OutOfMemoryError,
) -> tuple[list[float], list[float]]:
    """Five attempts of which one raises in a function of torch; losses and norms of the others."""
    losses, gradients = [], []
    for step in range(N):
        with patch.context() as patched:
            if step == RAISES_AT:
                patched.setattr(*where, fail)
                with pytest.raises(error):
                    once(model, optimizer, (step + 1) * batch(step))
                continue
            losses.append(once(model, optimizer, (step + 1) * batch(step)))
        grad = model.get_parameter("0.weight").grad
        assert grad is not None
        gradients.append(norm_of(grad))
    return losses, gradients


Where = tuple[Any, str]
ADAM: Where = (adam, "adam")

KINDS: dict[str, tuple[type[Adam], Where]] = {
    "before all": (Adam, ADAM),
    "after weight decay": (AdamW, (torch, "_foreach_sqrt")),
}


@pytest.mark.parametrize("once", [attempt, attempt_in_closure])
@pytest.mark.parametrize("kind", KINDS)
def test_an_update_that_raised_is_no_step_and_leaves_nothing_in_the_next(
    kind: str, once: Attempt, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, where = KINDS[kind]
    model = made(mlp)
    optimizer = make(model.parameters(), lr=0.01, foreach=True)
    run = watch(model, optimizer, probes=["default"])
    run.attach("0.weight", "grad_norm")
    losses, gradients = train(once, model, optimizer, where, monkeypatch)
    assert run.series("", "backward_loss").step.values.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(run.series("", "backward_loss").values, losses, rtol=1e-5)
    np.testing.assert_allclose(run.series("0.weight", "grad_norm").values, gradients, rtol=1e-5)
    assert run.series("0", "calls").values.tolist() == [1] * (N - 1)
    assert "discarded_backwards" not in run.data


def test_the_same_gradients_applied_once_more_are_the_step(watch: Watch) -> None:
    """Nothing new is computed for it: what the attempt was made of is what counts."""
    model = made(mlp)
    optimizer = Adam(model.parameters(), lr=0.01)
    run = watch(model, optimizer, probes=["default"])
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        if step == 1:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(*ADAM, fail)
                with pytest.raises(OutOfMemoryError):
                    optimizer.step()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(run.series("", "backward_loss").values, losses, rtol=1e-5)
    assert run.series("0", "calls").values.tolist() == [1, 1, 1]


def test_a_number_logged_because_of_it_is_kept_and_one_logged_before_is_not(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    optimizer = Adam(model.parameters(), lr=0.01)
    run = watch(model, optimizer, probes=["default"])
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        if step != 2:
            run.log(seen=step)
        with monkeypatch.context() as patched:
            if step == 1:
                patched.setattr(*ADAM, fail)
            try:
                optimizer.step()
            except OutOfMemoryError:
                run.log(out_of_memory=step)
    assert run.series("", "seen").dropna("step").values.tolist() == [0]
    assert run.series("", "out_of_memory").dropna("step").step.values.tolist() == [1]


def test_the_other_optimizers_update_of_the_same_step_counts(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    first = SGD(model.get_submodule("0").parameters(), lr=0.1)
    second = Adam(model.get_submodule("2").parameters(), lr=0.01)
    run = watch(model, probes=["default"])
    for step in range(3):
        model.zero_grad()
        loss_of(model(batch(step))).backward()
        first.step()
        with monkeypatch.context() as patched:
            if step == 1:
                patched.setattr(*ADAM, fail)
                with pytest.raises(OutOfMemoryError):
                    second.step()
            else:
                second.step()
    ratios = run.data.update_ratio
    assert ratios.sel(module="0").notnull().values.tolist() == [True, True, True]
    assert ratios.sel(module="2").notnull().values.tolist() == [True, False, True]


def test_a_window_of_gradients_has_a_gap_where_it_was_given_those_of_an_attempt(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    optimizer = Adam(model.parameters(), lr=0.01)
    run = watch(model, optimizer, probes={"0.weight": ["grad_cosine", "grad_norm"]})
    train(attempt, model, optimizer, ADAM, monkeypatch)
    assert run.series("0.weight", "grad_norm").notnull().values.tolist() == [True] * 4
    cosines = run.series("0.weight", "grad_cosine").reindex(step=range(4))
    assert cosines.notnull().values.tolist() == [False, True, False, True]


def test_a_step_on_another_thread_is_not_taken_for_one_that_raised(watch: Watch) -> None:
    """A forward here begins while an optimizer steps there."""
    model = made(mlp)
    inside, may_go_on = threading.Event(), threading.Event()

    class Slow(SGD):
        def step(self, closure: Any = None) -> Any:
            inside.set()
            may_go_on.wait(10)
            return super().step(closure)

    optimizer = Slow(model.parameters(), lr=0.1)
    run = watch(model, optimizer, probes=["default"])
    optimizer.zero_grad()
    loss = loss_of(model(batch(0)))
    loss.backward()
    stepping = threading.Thread(target=optimizer.step)
    stepping.start()
    assert inside.wait(10)
    model(batch(1))
    may_go_on.set()
    stepping.join()
    assert run.series("", "backward_loss").values.tolist() == pytest.approx([loss.item()])


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_an_update_that_was_applied_before_it_was_interrupted_counts(
    kind: type[Adam], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    optimizer = kind(model.parameters(), lr=0.01, foreach=True)
    run, real, losses = watch(model, optimizer, probes=["default"]), adam.adam, []

    def interrupted(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        raise KeyboardInterrupt

    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        losses.append(loss.item())
        with monkeypatch.context() as patched:
            if step == 2:
                patched.setattr(adam, "adam", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    optimizer.step()
            else:
                optimizer.step()
    np.testing.assert_allclose(run.series("", "backward_loss").values, losses, rtol=1e-5)
    assert run.series("0", "calls").values.tolist() == [1] * 4
