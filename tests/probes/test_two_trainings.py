"""Several trainings in one process: none is taken for another, and none is in another's way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.run.health.state import MANY_SHARED
from tests.models import floats, loss_of, made, mlp, sgd, train_step
from tests.probes.parameters.optimizer_oracles import probes_everywhere
from tests.run.conftest import Watch
from tests.run.test_races import on_another_thread

batch = floats(5, 4)
BACKWARD_LOSS = "backward_loss"
READS_IT = {"": ["loss_ema"]}
PATIENCE_S = 60.0
ROOT = Path(__file__).parents[2]


def recorded(run: nbp.Run) -> list[float]:
    run.controls.settle()
    losses: list[float] = run.series("", BACKWARD_LOSS).values.tolist()
    return losses


def in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> None:
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_pass_around_anothers_is_not_taken_for_it(watch: Watch) -> None:
    """The other model's pass begins before this one's adds its gradients, and ends after it."""
    model, other = made(mlp), made(mlp, 2)
    run = watch(model, probes=READS_IT)
    optimizer = sgd(model)
    losses = [train_step(model, optimizer, batch(step)) for step in range(3)]
    began, may_end = threading.Event(), threading.Event()

    def wait(gradient: Tensor) -> None:
        began.set()
        assert may_end.wait(PATIENCE_S)

    def train_other() -> None:
        loss = 1000 * loss_of(other(batch(9)))
        loss.register_hook(wait)
        loss.backward()

    optimizer.zero_grad()
    loss = loss_of(model(batch(3)))
    thread = in_thread(train_other)
    assert began.wait(PATIENCE_S)
    loss.backward()
    may_end.set()
    ended(thread)
    optimizer.step()
    assert recorded(run) == pytest.approx([*losses, loss.item()])


def test_gradients_are_read_in_no_pass_of_another_model(watch: Watch) -> None:
    """They may be written at that moment by the thread that trains this one."""
    reads: list[str] = []

    of_torch: Any = Tensor.grad

    class Told(nn.Parameter):
        def _read(self) -> Tensor | None:
            reads.append(threading.current_thread().name)
            found: Tensor | None = of_torch.__get__(self)
            return found

        grad = property(_read, of_torch.__set__)

    model, other = made(mlp), made(mlp, 2)
    for module in model:
        for name, value in [*module.named_parameters()]:
            setattr(module, name, Told(value.detach()))
    run = watch(model, probes=None)
    run.attach("", "loss_ema")
    optimizer, of_other = sgd(model), sgd(other)
    for step in range(4):
        train_step(model, optimizer, batch(step))
    assert {*reads} == {threading.current_thread().name}
    reads.clear()
    ended(in_thread(lambda: [train_step(other, of_other, batch(step)) for step in range(4)]))
    assert reads == []


def test_each_of_two_watched_trainings_has_its_own_losses(watch: Watch) -> None:
    """They take turns amid their steps: one calls its model, then the other goes back."""
    models = made(mlp), made(mlp, 2)
    runs = [watch(model, probes=READS_IT) for model in models]
    optimizers = [sgd(model, 0.1 / 1000**which) for which, model in enumerate(models)]
    turn = threading.Barrier(2)
    losses: list[list[float]] = [[], []]

    def train(which: int) -> None:
        model, optimizer = models[which], optimizers[which]
        for step in range(5):
            loss = 1000**which * loss_of(model(batch(step)))
            turn.wait(PATIENCE_S)
            optimizer.zero_grad()
            loss.backward()
            turn.wait(PATIENCE_S)
            optimizer.step()
            losses[which].append(loss.item())

    threads = [in_thread(lambda which=which: train(which)) for which in range(2)]  # type: ignore[misc]
    for thread in threads:
        ended(thread)
    assert [recorded(run) for run in runs] == [pytest.approx(some) for some in losses]


def test_a_generator_that_several_threads_advance_is_one_training(watch: Watch) -> None:
    """Also where a step begins on one thread and goes back on the next, which then ends."""
    model = made(mlp)
    run = watch(model, probes=READS_IT)
    losses: list[float] = []

    def training() -> Iterator[None]:
        optimizer = sgd(model)
        for step in range(6):
            optimizer.zero_grad()
            loss = loss_of(model(batch(step)))
            yield
            loss.backward()
            losses.append(loss.item())
            yield
            optimizer.step()

    for _ in (loop := training()):
        on_another_thread(lambda: next(loop, None))
    assert recorded(run) == pytest.approx(losses)
    assert run.status().problem == ""


def test_a_model_that_several_threads_train_is_reported(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=READS_IT)
    optimizer = sgd(model)

    def call() -> None:
        loss_of(model(batch(9))).backward()

    for _ in range(MANY_SHARED):
        assert run.status().problem == ""
        optimizer.zero_grad()
        call()
        on_another_thread(call)
        optimizer.step()
    problem = run.status().problem
    assert f"several threads trained this model at the same time, in {MANY_SHARED}" in problem


def test_a_run_that_is_closed_while_another_thread_goes_back_leaves_no_hook(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=READS_IT)
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    optimizer.zero_grad()
    loss = loss_of(model(batch(1)))
    loss.register_hook(lambda gradient: on_another_thread(run.close))
    loss.backward()
    optimizer.step()
    for parameter in model.parameters():
        assert not parameter._post_accumulate_grad_hooks
        assert not parameter._backward_hooks
        assert parameter.grad is not None


def test_an_optimizer_of_another_model_steps_on_while_the_watched_one_grows(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose parameters it holds is looked up in the model, which its own thread may change then."""
    model, other = made(mlp), made(mlp, 2)
    run = watch(model)
    every, n_asked = model.modules, 0

    def growing() -> Iterator[nn.Module]:
        nonlocal n_asked
        n_asked += 1
        for module in every():
            if n_asked == 1:
                model.add_module("grown", nn.Identity())
            yield module

    monkeypatch.setattr(model, "modules", growing)
    of_other = sgd(other)
    for step in range(3):
        on_another_thread(lambda step=step: train_step(other, of_other, batch(step)))  # type: ignore[misc]
    assert n_asked == 2, "asked again once, and then known"
    assert run.status().problem == ""


# ---------------------------------------------------------------- swapped tensors


def gradients_of(module: nn.Module) -> list[Tensor]:
    return [one.grad for one in module.parameters() if one.grad is not None]


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("moment", ["after the update", "before the update"])
def test_a_model_whose_tensors_are_swapped_is_recorded_on(moment: str, watch: Watch) -> None:
    model = made(mlp)
    optimizer = SGD(model.parameters(), lr=0.1)
    run = watch(model, optimizer, probes=READS_IT)
    run.attach("0", ["grad_norm", "grad_raw_norm", "output_grad_norm"])
    losses, norms = [], []
    for step in range(6):
        optimizer.zero_grad()
        dtype = next(model.parameters()).dtype
        loss = loss_of(model(batch(step).to(dtype)))
        losses.append(loss.item())
        loss.backward()
        norms.append(float(nn.utils.get_total_norm(gradients_of(model[0]))))
        del loss
        if step == 2 and moment == "before the update":
            model.to(torch.float64)
        optimizer.step()
        if step == 2 and moment == "after the update":
            model.to(torch.float64)
    assert recorded(run) == pytest.approx(losses)
    assert run.series("0", "grad_norm").values.tolist() == pytest.approx(norms)
    assert run.series("0", "output_grad_norm").notnull().all()
    assert "discarded_backwards" not in run.data


def test_nothing_refers_weakly_to_a_parameter_or_a_gradient(watch: Watch) -> None:
    """torch swaps no tensor that has a weak reference: looked at wherever a user's code runs."""
    model = made(mlp)
    optimizer = sgd(model)
    watch(model, optimizer, probes=probes_everywhere(model))
    counted: list[int] = []

    def count(*_: object) -> None:
        for parameter in model.parameters():
            found = [parameter] if parameter.grad is None else [parameter, parameter.grad]
            counted.extend(weakref.getweakrefcount(one) for one in found)

    model.register_forward_hook(count)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(count)
    optimizer.register_step_pre_hook(count)
    optimizer.register_step_post_hook(count)
    for step in range(4):
        train_step(model, optimizer, batch(step))
        count()
    assert counted
    assert set(counted) == {0}


# ---------------------------------------------------------------- for as long as you like


def stressed(seconds: float, folder: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-X", "faulthandler", "-W", "error"]
    arguments = ["-m", "tests.probes.stress_program", str(seconds), str(folder)]
    done = subprocess.run(
        [*program, *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "trainings of" in done.stdout


@pytest.mark.slow
def test_three_trainings_in_three_threads_neither_crash_nor_mix(tmp_path: Path) -> None:
    stressed(3.0, tmp_path)


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_three_trainings_in_three_threads_neither_crash_nor_mix_for_five_minutes(
    tmp_path: Path,
) -> None:
    stressed(300.0, tmp_path)
