"""Going back to a step: every number equal bit for bit, and on from there as a branch."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, HookError, ReplayWarning, TrainingStopped
from notebook_probe.run.attach.requests import Release, Request, Scale, Set
from notebook_probe.train import Checkpoints, Loop
from tests.train.checkpoints.kinds import KINDS, loop_of, same_state
from tests.train.conftest import a_loop, batches

EPOCHS = 3  # of 4 batches
QUIET: dict[str, Any] = {"probes": None, "budget": None}


def traced(loop: Loop) -> list[dict[str, Any]]:
    trace: list[dict[str, Any]] = []
    loop.on_step(lambda loop, metrics: trace.append({"step": loop.loop_step, **metrics}))
    return trace


@pytest.mark.parametrize("step", [4, 5, 7, 8, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_again_is_what_was_trained(tmp_path: Path, kind: str, step: int) -> None:
    loop, data = loop_of(kind)
    loop.add(Checkpoints(tmp_path, every=5))
    loop.save_checkpoint(tmp_path)
    states: dict[int, Any] = {}

    def keep(loop: Loop, metrics: Any) -> None:
        if not loop.replaying and loop.n_updates == step:
            states[step] = torch.utils._pytree.tree_map(
                lambda v: v.clone() if isinstance(v, torch.Tensor) else v, loop.trainer.state_dict()
            )

    loop.on_step(keep)
    trace = traced(loop)
    loop.run_epochs(data, EPOCHS)
    expected = list(trace)
    del trace[:]
    assert loop.rewind(step) is None
    assert trace == expected[5 * (step // 5) : step]
    assert (loop.loop_step, loop.stopped) == (step, True)
    assert same_state(loop.trainer.state_dict(), states[step])
    del trace[:]
    loop.run_epochs(data, EPOCHS)
    assert trace == expected[step:]


@pytest.mark.slow
def test_the_record_goes_on_as_a_branch_with_denser_probes(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    loop, data = loop_of("mlp")
    loop.add(Checkpoints(tmp_path / "kept", every=4))
    first = loop.watch(store=store, **QUIET)
    loop.run_epochs(data, EPOCHS)
    recorded = first.series("", "loss").values.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = loop.rewind(6, probes={"*": ["weight_norm"]}, budget=None)
    assert first.closed
    assert run is loop.run
    assert run is not None
    loop.run_epochs(data, EPOCHS)
    assert run.series("", "loss").step.values.tolist() == [*range(12)]
    assert run.series("", "loss").values.tolist() == recorded
    assert run.series("0", "weight_norm").dropna("step").step.values.tolist() == [*range(6, 12)]
    run.close()
    old = nbp.open_run(store, branch=1)
    assert old.series("", "loss").values.tolist() == recorded
    assert sum(event.kind == "resume" for event in nbp.open_run(store).events) == 1


@pytest.mark.slow
def test_it_goes_back_again_along_the_line_that_it_took(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    loop, data = loop_of("mlp")
    loop.add(Checkpoints(tmp_path / "kept", every=3))
    loop.watch(store=store, **QUIET)
    loop.run_epochs(data, EPOCHS)
    for group in loop.trainer.optimizer.param_groups:
        group["weight_decay"] = 5.0
    first = loop.rewind(4, **QUIET)
    assert first is not None
    for group in loop.trainer.optimizer.param_groups:
        group["weight_decay"] = 0.5  # the branch is another training
    trace = traced(loop)
    loop.run_epochs(data, EPOCHS)
    expected = list(trace)
    del trace[:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = loop.rewind(8, **QUIET)  # from its own checkpoint 6, not from that of the old branch
    assert run is not None
    assert trace == expected[2:4]
    run.close()


BY_HAND = {2: ("p", 0.5), 4: ("lr", 0.003), 5: ("p", 0.75), 6: ("lr", 4e-4), 8: ("p", 0.125)}
"""What is set after these steps; the checkpoints are at 4 and 8."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "p"), [(4, 0.5), (5, 0.5), (6, 0.5), (7, 0.75), (8, 0.75), (12, 0.125)]
)
def test_what_was_set_by_hand_is_set_again_before_the_same_steps(
    tmp_path: Path, step: int, p: float
) -> None:
    loop, data = loop_of("mlp")
    drop = loop.trainer.model[1]  # type: ignore[index]
    loop.add(Checkpoints(tmp_path / "kept", every=4))
    first = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    first.knob("p", lambda: drop.p, lambda p: setattr(drop, "p", p), 0.0, 0.9)
    states: dict[int, Any] = {}

    def set_by_hand(loop: Loop, metrics: Any) -> None:
        if loop.replaying:
            return
        states[loop.n_updates] = torch.utils._pytree.tree_map(
            lambda v: v.clone() if isinstance(v, torch.Tensor) else v, loop.trainer.state_dict()
        )
        if loop.loop_step in BY_HAND:
            first.set(*BY_HAND[loop.loop_step])
            first.controls.put(Set("p", 2.0))  # refused at the boundary

    hook = loop.on_step(set_by_hand)
    loop.run_epochs(data, EPOCHS)
    hook.remove()
    assert [event.step for event in first.events if event.kind == "set"] == [3, 5, 6, 7, 9]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        branch = loop.rewind(step, **QUIET)
    assert branch is not None
    assert same_state(loop.trainer.state_dict(), states[step])
    assert drop.p == p
    branch.set("p", 0.0)
    assert drop.p == 0.0, "the branch has the knobs"
    loop.run_epochs(data, EPOCHS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = loop.rewind(step, **QUIET)  # what was set later on the other branch is no more
    assert again is not None
    assert same_state(loop.trainer.state_dict(), states[step])
    assert drop.p == p
    again.close()


HELD: dict[int, Request] = {1: Set("lr", 0.02, hold=True), 6: Release("lr"), 9: Scale("lr", 0.5)}
"""What is asked after these steps; the checkpoints are at 4 and 8."""


@pytest.mark.parametrize("step", [4, 6, 8, 9, 12])
def test_a_rate_is_held_scaled_and_released_before_the_same_steps(
    tmp_path: Path, step: int
) -> None:
    loop, data = loop_of("mlp")
    loop.add(Checkpoints(tmp_path / "kept", every=4))
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    states: dict[int, Any] = {}

    def by_hand(loop: Loop, metrics: Any) -> None:
        if loop.replaying:
            return
        states[loop.n_updates] = torch.utils._pytree.tree_map(
            lambda v: v.clone() if isinstance(v, torch.Tensor) else v, loop.trainer.state_dict()
        )
        if loop.loop_step in HELD:
            run.controls.put(HELD[loop.loop_step])

    hook = loop.on_step(by_hand)
    loop.run_epochs(data, EPOCHS)
    hook.remove()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        branch = loop.rewind(step, **QUIET)
    assert branch is not None
    assert same_state(loop.trainer.state_dict(), states[step])
    branch.close()


def test_what_cannot_be_set_again_is_said(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    size = {"value": 1.0}
    loop.save_checkpoint(tmp_path / "kept")
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    run.knob("size", lambda: size["value"], lambda value: size.update(value=value))
    loop.on_step(lambda loop, m: run.set("size", 2.0) if loop.run is run else None)
    loop.run_steps(data, 3)

    def broken(value: float) -> None:
        raise OSError("no such device")

    run.knob("size", lambda: size["value"], broken)
    with pytest.warns(ReplayWarning, match=r"set again: size=1.0 of step 0: OSError\('no such dev"):
        branch = loop.rewind(2, **QUIET)
    assert branch is not None
    branch.close()


def test_a_state_from_before_any_data_begins_the_data_anew(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    loop.save_checkpoint(tmp_path)
    trace = traced(loop)
    loop.run_steps(data, 5)  # amid the epoch
    expected = list(trace)
    del trace[:]
    loop.rewind(3)
    assert trace == expected[:3]


def test_a_replay_that_differs_tells_from_where_on(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    loop.save_checkpoint(tmp_path / "kept")
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    loop.run_epochs(data, 1)
    data[3][0].mul_(2)
    with pytest.warns(ReplayWarning, match="from step 3 on the replay differs from the record: lo"):
        branch = loop.rewind(6, **QUIET)
    assert branch is not None
    branch.close()
    assert run.closed


def test_nothing_is_saved_or_recorded_twice(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    kept = loop.add(Checkpoints(tmp_path / "kept", every=2, at_close=True))
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    loop.run_epochs(data, 1)
    before = loop.checkpoints
    branch = loop.rewind(5, **QUIET)
    assert branch is not None
    assert loop.checkpoints == before
    assert branch.series("", "loss").step.values.tolist() == [*range(5)]
    assert kept is not None
    assert run.closed
    branch.close()


def test_a_loop_of_another_process_goes_back_too(tmp_path: Path) -> None:
    loop, data = loop_of("conv")
    loop.add(Checkpoints(tmp_path, every=3))
    expected = traced(loop)
    loop.run_epochs(data, EPOCHS)
    again, data = loop_of("conv", seed=4)
    trace = traced(again)
    again.load_checkpoint(tmp_path)
    with pytest.raises(
        ValueError, match=r"rewind\(8\): the loop has not run yet; give it the data"
    ):
        again.rewind(8)
    again.rewind(8, data)
    assert trace == expected[6:8]
    again.rewind(7)
    assert trace == expected[6:8] + expected[6:7]


def test_a_loop_that_runs_goes_back_nowhere(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(4)
    loop.save_checkpoint(tmp_path)
    changes: list[Callable[[Loop, Any], Any]] = [
        lambda loop, metrics: loop.rewind(0),
        lambda loop, metrics: loop.load_checkpoint(tmp_path),
    ]
    for change in changes:
        hook = loop.on_step(change)
        with pytest.raises(HookError, match="the loop runs already; stop"):
            loop.run_steps(data, 1)
        hook.remove()


def test_a_stop_ends_a_replay(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    loop.save_checkpoint(tmp_path)
    loop.run_epochs(data, 1)
    loop.on_step(lambda loop, metrics: loop.stop() if loop.loop_step == 2 else None)
    with pytest.raises(TrainingStopped, match=r"rewind\(6\) was stopped at step 3"):
        loop.rewind(6)
    assert loop.loop_step == 3


def test_what_cannot_be_gone_back_to_is_refused_and_nothing_has_changed(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    loop.run_steps(data, 4)
    with pytest.raises(
        CheckpointError, match=r"there are: none; loop.add\(Checkpoints\(folder\)\)"
    ):
        loop.rewind(2)
    loop.save_checkpoint(tmp_path / "kept")
    for step in (5, -1, 2.0, True):
        with pytest.raises(ValueError, match=r"rewind\(.*\): a step from 0 to 4 is expected"):
            loop.rewind(step)  # type: ignore[arg-type]
    with pytest.raises(
        CheckpointError, match=r"no checkpoint at or before step 3 .* there are: 4;"
    ):
        loop.rewind(3)
    assert not run.closed
    loop.run_steps(data, 2)
    assert run.series("", "loss").step.values.tolist() == [*range(6)]
    bare = a_loop()
    bare.run_steps(data, 1)
    with pytest.raises(ValueError, match=r"rewind\(probes\): there is no record"):
        bare.rewind(0, probes="default")


@pytest.mark.slow
def test_the_page_about_checkpoints_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = Path(__file__).parents[2] / "docs" / "how_to"
    text = "".join((pages / name).read_text("utf-8") for name in ("model.md", "checkpoints.md"))
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(block, names)  # the pages' own code


def test_a_loader_with_a_generator_of_its_own_begins_again_as_it_came(tmp_path: Path) -> None:
    loop = a_loop()
    own = torch.Generator().manual_seed(3)
    samples: Any = batches(6)
    data: Any = torch.utils.data.DataLoader(samples, batch_size=None, shuffle=True, generator=own)
    loop.save_checkpoint(tmp_path)  # before it has met the data
    trace = traced(loop)
    loop.run_epochs(data, 2)
    expected = list(trace)
    for _ in range(2):
        del trace[:]
        loop.rewind(0)
        loop.run_epochs(data, 2)
        assert trace == expected
