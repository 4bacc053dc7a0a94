"""Detaching, interrupting, dropping, clearing: what is left of the training and of the record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from tests.models import ConvNet, floats, loss_of, made, mlp, sgd, train_step
from tests.probes.optimizer_oracles import MODULE, PARAMETER, Diary, check, play, probes_everywhere
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.traces import n_hooks

batch = floats(5, 4)


def plain_loop(
    after: Callable[[nn.Module, int], None] = lambda model, step: None, steps: int = 5
) -> Callable[[nn.Module, Diary], Sequence[Optimizer]]:
    """Some steps; ``after`` is called after each of them, on the watched model alone."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
            if not diary.alone:
                after(model, step)
        return [optimizer]

    return loop


class Runs:
    """Watches, and keeps the run where the loop can reach it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.all: list[nbp.Run] = []

    def __call__(self, model: nn.Module, **options: object) -> nbp.Run:
        self.all.append(self._watch(model, **options))
        return self.all[-1]

    @property
    def run(self) -> nbp.Run:
        return self.all[0]


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
            # What was broken off may hold a copy of its input until it is called again.
            assert left <= (2 if fate == "raises" else 0)
        model(floats(3, 4)(0), False)
        assert n_tensors_of(rows) == 0


# ---------------------------------------------------------------- interrupting


class Interrupted(nn.Module):
    """Breaks off in the middle of a forward when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.error: BaseException | None = None

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x).relu()
        if self.error is not None:
            raise self.error
        return self.second(y)


@pytest.mark.parametrize("error", [ValueError("bad batch"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("moment", ["forward", "backward"])
def test_what_an_interrupt_leaves_half_done_pools_into_the_step_that_is_done(
    error: BaseException, moment: str, watch: Watch
) -> None:
    """Then a validation, which counts for nothing, then training as if nothing had been."""

    def fail(gradient: Tensor) -> None:
        raise error

    def broken_off(model: nn.Module) -> None:
        output = model(batch(77))
        output.register_hook(fail)
        loss_of(output).backward()

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        assert isinstance(model, Interrupted)
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(4):
            if step == 2:
                model.error = error if moment == "forward" else None
                with pytest.raises(type(error)):
                    broken_off(model)
                model.error = None
                model.eval()
                with torch.no_grad():
                    model(1e6 * batch(99))
                model.train()
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(Interrupted, loop, watch)
    check(run, diary)
    assert len(diary.entries[2].calls["first"]["output_norm"]) == 2


@pytest.mark.parametrize("feature", ["input", "output", "grad_output", "weight", "grad", "update"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_inside_a_quantity_reaches_the_training_loop(
    feature: str, error: type[BaseException], watch: Watch
) -> None:
    """The stop button may be pressed while a probe computes; no probe swallows it."""
    pressed = [True]

    def body(value: Tensor) -> float:
        if pressed.pop() if pressed else False:
            raise error
        return 1.0

    space: dict[str, Any] = {"body": body}
    exec(f"def stopped({feature}): return body({feature})", space)
    model = made(mlp)
    run = watch(model, probes={"0": [space["stopped"], "output_norm"]})
    optimizer = sgd(model)
    with pytest.raises(error):
        train_step(model, optimizer, batch(0))
    for step in range(3):
        train_step(model, optimizer, batch(step))
    assert not run.status().errors
    assert np.isfinite(run.data.stopped.sel(module="0")[1:]).all()


# ---------------------------------------------------------------- failing readings


@pytest.mark.parametrize("feature", ["input", "output", "grad_output", "weight", "grad", "update"])
def test_a_reading_that_always_fails_is_counted_and_given_up_and_training_is_the_same(
    feature: str, watch: Watch
) -> None:
    space: dict[str, Any] = {}
    exec(f"def fails({feature}): raise ZeroDivisionError('each time')", space)
    places = ["0", "2"]
    runs = Runs(watch)

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        run = runs(model, **options)
        run.attach(places, space["fails"])
        return run

    run, diary = play(mlp, plain_loop(), begin)
    failed = [probe for probe in run.probes() if probe.quantity == "fails"]
    assert [probe.module for probe in failed] == places
    for probe in failed:
        assert (probe.n_values, probe.n_errors, probe.disabled) == (0, 3, True)
        assert probe.error == "ZeroDivisionError: each time"
        assert "disabled" in probe.note
    assert {probe.quantity for probe in run.status().errors} == {"fails"}
    run.detach(places, "fails")
    check(run, diary)


# ---------------------------------------------------------------- several runs, changing probes


def test_two_runs_on_one_model_record_the_same_and_one_outlives_the_other(watch: Watch) -> None:
    runs = Runs(watch)

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        runs(model, **options)
        runs(model, **options)
        return runs.run

    def after(model: nn.Module, step: int) -> None:
        if step == 2:
            runs.all[1].close()

    run, diary = play(mlp, plain_loop(after), begin)
    check(run, diary)
    diary.entries = diary.entries[:3]
    check(runs.all[1], diary)


def test_probes_that_come_and_go_are_whole_from_their_first_step_to_their_last(
    watch: Watch,
) -> None:
    """Changed after the update of step 1 and of step 3; all others are not affected."""
    runs = Runs(watch)
    handles: list[nbp.Handle] = []

    def after(model: nn.Module, step: int) -> None:
        if step == 1:
            handles.append(runs.run.attach("2", [*MODULE, "output_mean"]))
            handles.append(runs.run.attach("2.weight", PARAMETER))
        elif step == 3:
            for handle in handles:
                handle.remove()

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        chosen = {place: names for place, names in probes_everywhere(model).items()
                  if place not in ("2", "2.weight")}  # fmt: skip
        return runs(model, probes=chosen)

    run, diary = play(mlp, plain_loop(after, steps=6), begin)
    check(run, diary)
    expected = diary.expected()
    for place, names in (("2", MODULE), ("2.weight", PARAMETER)):
        for quantity in names:
            series = run.series(place, quantity)
            assert series.step.values.tolist() == [2, 3]
            wanted = [expected[place, quantity][step] for step in (2, 3)]
            np.testing.assert_allclose(series, wanted, rtol=1e-5, err_msg=f"{quantity} at {place}")


@pytest.mark.parametrize("moment", ["before", "forward", "backward", "step"])
def test_a_probe_attached_in_the_middle_of_a_step_has_no_half_of_it(
    moment: str, watch: Watch
) -> None:
    """All features of a probe begin with the same step: the next, or this one before its forward.

    Half a step, say an update without the forward that led to it, is never recorded.
    """
    runs = Runs(watch)

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)

        def attach(now: str, step: int) -> None:
            if now == moment and step == 2 and not diary.alone:
                runs.run.attach({"2": MODULE, "2.weight": PARAMETER})

        for step in range(5):
            optimizer.zero_grad()
            attach("before", step)
            loss = loss_of(model(batch(step)))
            attach("forward", step)
            loss.backward()
            attach("backward", step)
            with diary.update(optimizer):
                optimizer.step()
            attach("step", step)
        return [optimizer]

    run, diary = play(mlp, loop, lambda model, **options: runs(model, probes={"0": MODULE}))
    expected = diary.expected()
    first = 2 if moment == "before" else 3
    for place, names in (("2", MODULE), ("2.weight", PARAMETER)):
        for quantity in names:
            series = run.series(place, quantity)
            assert series.step.values.tolist() == list(range(first, 5))
            wanted = [expected[place, quantity][step] for step in range(first, 5)]
            np.testing.assert_allclose(series, wanted, rtol=1e-5, err_msg=f"{quantity} at {place}")


HOOKED: dict[str, Callable[[nn.Module, Callable[..., None]], object]] = {
    "forward pre-hook": lambda model, act: model.get_submodule("1").register_forward_pre_hook(act),
    "forward hook": lambda model, act: model.get_submodule("0").register_forward_hook(act),
    "gradient hook": lambda model, act: model.get_parameter("0.weight").register_hook(act),
    "accumulation hook": lambda model, act: model.get_parameter(
        "2.weight"
    ).register_post_accumulate_grad_hook(act),
    "global forward hook": lambda model, act: nn.modules.module.register_module_forward_hook(act),
}


@pytest.mark.parametrize("where", [*HOOKED, "optimizer pre-hook", "optimizer post-hook"])
def test_probes_may_come_and_go_from_inside_any_hook(where: str, watch: Watch) -> None:
    """Each time the hook is called one probe comes, or all go; the others miss no step."""
    runs = Runs(watch)
    handles: list[nbp.Handle] = []

    def act(*args: object) -> None:
        if len(handles) < 2:
            handles.append(runs.run.attach("*", ["output_mean", "input_std"]))
            handles.append(runs.run.attach("2.weight", "update_ratio"))
        else:
            while handles:
                handles.pop().remove()

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        hooks: list[Any] = []
        if not diary.alone and where in HOOKED:
            hooks.append(HOOKED[where](model, act))
        elif not diary.alone:
            register = {"optimizer pre-hook": optimizer.register_step_pre_hook,
                        "optimizer post-hook": optimizer.register_step_post_hook}  # fmt: skip
            hooks.append(register[where](act))
        for step in range(6):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        for hook in hooks:
            hook.remove()
        return [optimizer]

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        return runs(model, probes={"0": MODULE, "0.weight": PARAMETER, "2": ["output_norm"]})

    run, diary = play(mlp, loop, begin)
    expected, data = diary.expected(), run.data.load()
    for place, names in (("0", MODULE), ("0.weight", PARAMETER), ("2", ["output_norm"])):
        for quantity in names:
            wanted = list(expected[place, quantity].values())
            np.testing.assert_allclose(data[quantity].sel(module=place), wanted, rtol=1e-5)
    assert not run.status().problem
    assert run.data.step.values.tolist() == list(range(6))


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
    run.settle()
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


# ---------------------------------------------------------------- dropped with a dashboard


def test_a_model_may_go_while_somebody_still_looks_at_its_record(watch: Watch) -> None:
    """A dashboard holds the run and reads it; the model must not live through that."""
    model = made(ConvNet)
    images = floats(4, 1, 6, 6)
    run = nbp.watch(model, store=watch(made(mlp)).location + "-of-its-own")
    looks: list[int] = []
    run.each_boundary(lambda: looks.append(run.data.sizes["step"]))
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
