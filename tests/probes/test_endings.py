"""Detaching, closing, dropping, clearing: what is left of the training and of the record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

import notebook_probe as nbp
from tests.models import ConvNet, floats, loss_of, made, mlp, sgd, train_step
from tests.probes.parameters.optimizer_oracles import (
    MODULE,
    PARAMETER,
    check,
    play,
    probes_everywhere,
)
from tests.probes.parity import differing, everything
from tests.probes.watched_loops import Runs, plain_loop
from tests.run.conftest import Watch
from tests.run.traces import n_hooks

batch = floats(5, 4)


# ---------------------------------------------------------------- detaching


def state_of(model: nn.Module) -> list[tuple[list[str], dict[str, list[int]]]]:
    """Attributes of every module, and the identities of the hooks on it."""
    return [
        (list(vars(module)), {name: [id(hook) for hook in value.values()]
                              for name, value in vars(module).items() if "_hooks" in name})
        for module in model.modules()
    ]  # fmt: skip


def test_detaching_leaves_the_modules_as_they_were_and_freezes_the_series(watch: Watch) -> None:
    """Hooks of the user's own, on modules and on gradients, stay where they are."""
    model = made(mlp)
    model.get_submodule("1").register_forward_hook(lambda module, given, output: None)
    before = state_of(model)
    root = watch(model, probes=None)
    watched = state_of(model)
    handle = root.attach({"*": MODULE})
    handle_of_weights = root.attach({"0.weight": PARAMETER})
    optimizer = sgd(model)
    for step in range(5):
        if step == 3:
            handle.remove()
            handle_of_weights.remove()
        train_step(model, optimizer, batch(step))
    assert state_of(model) == watched, "nothing but the hooks that every run has at the root"
    for place, quantity in (("0", "output_norm"), ("2", "output_grad_norm"),
                            ("0.weight", "update_ratio")):  # fmt: skip
        assert root.series(place, quantity).step.values.tolist() == [0, 1, 2]
    root.close()
    assert state_of(model) == before
    assert not [value for value in model.parameters() if value._post_accumulate_grad_hooks]


def test_a_closed_run_leaves_the_training_as_it_is(watch: Watch) -> None:
    runs = Runs(watch)
    run, diary = play(
        mlp, plain_loop(lambda model, step: runs.run.close() if step == 2 else None), runs
    )
    diary.entries = diary.entries[:3]
    check(run, diary)


# ---------------------------------------------------------------- dropping


@pytest.mark.slow
def test_runs_that_the_collector_takes_in_the_middle_of_a_step_disturb_nothing(
    watch: Watch,
) -> None:
    """Models and runs in cycles die whenever the collector likes: in an optimizer's hooks, say."""

    def with_garbage(model: nn.Module) -> dict[str, bytes]:
        optimizer = Adam(model.parameters(), lr=0.01)
        handles = [optimizer.register_step_pre_hook(lambda *args: _collect()),
                   optimizer.register_step_post_hook(lambda *args: _collect())]  # fmt: skip
        for step in range(12):
            if model is watched:
                cycle: Any = made_without_seed()
                cycle.me = [cycle, watch(cycle, probes={"*": MODULE})]
                train_step(cycle, sgd(cycle), batch(0))
                del cycle
            train_step(model, optimizer, batch(step))
        for handle in handles:
            handle.remove()
        return everything(model, [optimizer])

    alone, watched = made(mlp), made(mlp)
    run = watch(watched, probes=probes_everywhere(watched))
    left = with_garbage(alone)
    assert differing(left, with_garbage(watched)) == []
    assert run.data.step.values.tolist() == list(range(12))
    assert not run.status().problem


def _collect() -> None:
    gc.collect(0)


def made_without_seed() -> nn.Module:
    with torch.random.fork_rng():
        return mlp()


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def n_tensors_of(rows: int) -> int:
    """Living tensors with so many rows; the tests below use a number of their own."""
    found = 0
    for one in gc.get_objects():
        if type(one) is Tensor and one.ndim and one.shape[0] == rows:
            found += 1
    return found


def ratio(input: Tensor, output: Tensor) -> Tensor:
    """Needs both, so that the input must wait for the output."""
    return output.abs().sum() / input.abs().sum()


EVERYTHING: list[Any] = [*MODULE, "input_std", "output_std", "zero_fraction", ratio]


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["backward", "no backward", "raises"])
def test_no_activation_outlives_its_step(fate: str, watch: Watch) -> None:
    """By reference counting alone: a copy that waits or a cycle would hold memory for long."""

    class Fragile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()
            self.breaks = nn.Linear(2, 2)

        def forward(self, x: Tensor, fails: bool) -> Tensor:
            y = self.net(x)
            return self.breaks(y[:, :1] if fails else y)

    model = made(Fragile)
    watch(model, probes={"*": EVERYTHING, "": EVERYTHING})
    optimizer = sgd(model)
    rows = 37
    with without_collector():
        for step in range(3):
            given = floats(rows, 4)(step)
            if fate == "raises":
                with pytest.raises(RuntimeError):
                    model(given, True)
            else:
                output = model(given, False)
                if fate == "backward":
                    loss_of(output).backward()
                    optimizer.step()
                del output
            del given
            left = n_tensors_of(rows)
            # What was broken off may hold a copy of its input until it is called again, and the
            # inputs of a call without a backward are kept until the next one.
            assert left <= {"backward": 0, "no backward": 1, "raises": 2}[fate]
        model(floats(3, 4)(0), False)
        assert n_tensors_of(rows) == 0


def test_a_model_may_go_while_somebody_still_looks_at_its_record(watch: Watch) -> None:
    """A dashboard holds the run and reads it; the model must not live through that."""
    model = made(ConvNet)
    images = floats(4, 1, 6, 6)
    run = nbp.watch(model, store=watch(made(mlp)).location + "-of-its-own")
    looks: list[int] = []
    run.controls.each_boundary(lambda: looks.append(run.data.sizes["step"]))
    for step in range(3):
        train_step(model, SGD(model.parameters(), lr=0.1), images(step))
    parts = [weakref.ref(part) for part in (*model.modules(), *model.parameters())]
    wanted = run.data.output_norm.sel(module="head").values.copy()
    del model
    gc.collect()
    assert [part() for part in parts if part() is not None] == []
    np.testing.assert_array_equal(run.data.output_norm.sel(module="head"), wanted)
    assert looks
    run.close()


def test_a_run_that_is_dropped_leaves_a_model_without_hooks_that_trains_the_same(
    watch: Watch,
) -> None:
    alone, model = made(mlp), made(mlp)
    run = nbp.watch(model, store=watch(made(mlp)).location + "-dropped")
    mine, other = sgd(model), sgd(alone)
    for step in range(2):
        train_step(model, mine, batch(step))
        train_step(alone, other, batch(step))
    del run
    gc.collect()
    assert n_hooks(model) == 0
    for step in range(2, 4):
        train_step(model, mine, batch(step))
        train_step(alone, other, batch(step))
    assert differing(everything(alone), everything(model)) == []


# ---------------------------------------------------------------- hooks taken off by others


def test_hooks_that_somebody_clears_end_the_series_and_the_run_says_so(watch: Watch) -> None:
    """As cleaning code does; training goes on and parameters are read as before."""
    runs = Runs(watch)

    def after(model: nn.Module, step: int) -> None:
        if step == 1:
            for module in model.modules():
                module._forward_hooks.clear()
                module._forward_pre_hooks.clear()

    run, diary = play(mlp, plain_loop(after, steps=8), runs)
    run.controls.settle()
    expected, data = diary.expected(), run.data.load()
    for name in ("0.weight", "2.bias"):
        for quantity in PARAMETER:
            wanted = expected[name, quantity]
            series = data[quantity].sel(module=name).dropna("step")
            np.testing.assert_allclose(series, list(wanted.values()), rtol=1e-5, err_msg=name)
    assert run.series("2", "output_norm").step.values.tolist() == [0, 1]
    told = {(probe.module, probe.quantity): probe.note for probe in run.probes()}
    assert "hook" in told["2", "output_norm"]
    assert told["2.weight", "grad_norm"] == ""
    assert "hook" in str(run.status())
    run.detach("2")
    run.close()


def test_probes_attached_after_the_hooks_were_cleared_measure_again(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"2": ["output_norm"]})
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    train_step(model, optimizer, batch(1))
    run.detach("2")
    train_step(model, optimizer, batch(2))
    run.attach("2", "output_norm")
    for step in (3, 4):
        train_step(model, optimizer, batch(step))
    assert run.series("2", "output_norm").step.values.tolist()[-1] == 4
