"""Probes and runs that come and go while a model trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from torch import nn
from torch.optim import Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, mlp
from tests.probes.parameters.optimizer_oracles import (
    MODULE,
    PARAMETER,
    Diary,
    check,
    play,
    probes_everywhere,
)
from tests.probes.watched_loops import Runs, plain_loop
from tests.run.conftest import Watch

batch = floats(5, 4)


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
