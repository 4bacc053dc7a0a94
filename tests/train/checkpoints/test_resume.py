"""A training that goes on from a checkpoint is the one that never stopped, bit for bit."""

import copy
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import notebook_probe as nbp
from notebook_probe.errors import DuplicateNameError
from notebook_probe.train import Loop
from tests.train.checkpoints.kinds import KINDS, loop_of, same_state
from tests.train.conftest import a_loop, batches

EPOCHS = 3  # of 4 batches


def options(precision: str) -> dict[str, Any]:
    if precision == "bfloat16":
        return {"autocast": torch.bfloat16}
    if precision == "scaler":
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3)
        return {"scaler": scaler, "autocast": torch.bfloat16, "clip": 1.0}
    return {}


def traced(loop: Loop) -> list[dict[str, Any]]:
    trace: list[dict[str, Any]] = []
    loop.on_step(lambda loop, metrics: trace.append({"step": loop.loop_step, **metrics}))
    return trace


@pytest.mark.parametrize(
    ("accumulate", "at"),
    [(1, 1), (1, 6), (1, 8), (3, 1), (3, 3), (3, 4)],  # 8 and 4: the end of an epoch
)
@pytest.mark.parametrize("kind", KINDS)
def test_resumed_is_uninterrupted(tmp_path: Path, kind: str, accumulate: int, at: int) -> None:
    check(tmp_path, kind, at, accumulate=accumulate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["bfloat16", "scaler"])
def test_resumed_is_uninterrupted_in_mixed_precision(
    tmp_path: Path, kind: str, precision: str
) -> None:
    if kind == "lstm" and not can_run_lstm_in_bfloat16():
        pytest.skip("this processor has no bfloat16 LSTM in torch")
    check(tmp_path, kind, 6, precision)


def can_run_lstm_in_bfloat16() -> bool:
    try:
        with torch.autocast("cpu", torch.bfloat16):
            nn.LSTM(8, 8)(torch.randn(2, 3, 8))
    except RuntimeError:
        return False
    return True


def check(folder: Path, kind: str, at: int, precision: str = "", **more: Any) -> None:
    whole, data = loop_of(kind, **options(precision), **more)

    def save(loop: Loop, metrics: Mapping[str, Any]) -> None:
        if loop.n_updates == at:
            loop.save_checkpoint(folder)

    whole.on_step(save, priority=-1)
    expected = traced(whole)
    whole.run_epochs(data, EPOCHS)

    resumed, data = loop_of(kind, seed=7, **options(precision), **more)
    trace = traced(resumed)
    resumed.load_checkpoint(folder)
    torch.manual_seed(99), random.seed(99)  # whatever happens before the loop runs
    resumed.run_epochs(data, EPOCHS)
    assert trace == expected[at:]
    assert len(trace) > 1
    assert same_state(resumed.trainer.state_dict(), whole.trainer.state_dict())
    assert same_state(resumed.state_dict(), whole.state_dict())


def test_it_may_be_resumed_again_and_again(tmp_path: Path) -> None:
    whole, data = loop_of("mlp")
    expected = traced(whole)
    whole.run_epochs(data, EPOCHS)
    trace: list[dict[str, Any]] = []
    for life in range(4):
        loop, data = loop_of("mlp", seed=life)
        own = traced(loop)
        if life:
            loop.load_checkpoint(tmp_path)
        loop.on_step(lambda loop, m: loop.stop() if loop.loop_step % 3 == 2 else None)
        loop.run_epochs(data, EPOCHS)
        loop.save_checkpoint(tmp_path)
        trace += own
    assert trace == expected


def test_a_checkpoint_that_is_saved_before_training_goes_on_is_the_same(tmp_path: Path) -> None:
    loop, data = loop_of("conv")
    loop.run_epochs(data, 1)
    loop.save_checkpoint(tmp_path / "a")
    again, data = loop_of("conv")
    again.load_checkpoint(tmp_path / "a")
    again.save_checkpoint(tmp_path / "b")
    states = [torch.load(tmp_path / name / "step_00000004.pt", weights_only=True) for name in "ab"]
    assert same_state(*states)


def test_objects_of_the_user_go_on_too(tmp_path: Path) -> None:
    def averaged(loop: Loop) -> AveragedModel:
        ema = AveragedModel(loop.trainer.model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        loop.register_state("ema", ema)
        loop.on_step(lambda loop, metrics: ema.update_parameters(loop.trainer.model))
        return ema

    class Counts:
        n = 0

        def on_step(self, loop: Loop, metrics: Any) -> None:
            self.n += 1

        def state_dict(self) -> dict[str, int]:
            return {"n": self.n}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.n = state["n"]

    whole = a_loop()
    expected, counted = averaged(whole), whole.add(Counts())
    whole.run_steps(batches(3), 3)
    whole.save_checkpoint(tmp_path)
    after = batches(2, seed=5)
    saved = copy.deepcopy(after)
    whole.run_epochs(after, 1)
    resumed = a_loop()
    ema, counts = averaged(resumed), resumed.add(Counts())
    resumed.load_checkpoint(tmp_path)
    resumed.load_state_dict({**resumed.state_dict(), "data": None})  # other data follows
    resumed.run_epochs(saved, 1)
    assert same_state(ema.state_dict(), expected.state_dict())
    assert (counts.n, counted.n) == (5, 5)
    with pytest.raises(TypeError, match=r"register_state\('x', int\): an object with state_dict"):
        resumed.register_state("x", 3)
    with pytest.raises(DuplicateNameError, match="another object has this name"):
        resumed.register_state("ema", nn.Linear(1, 1))


@pytest.mark.slow
def test_the_record_goes_on_where_the_checkpoint_is(tmp_path: Path) -> None:
    store, kept = tmp_path / "run.zarr", tmp_path / "kept"
    loop, data = loop_of("mlp")
    losses = traced(loop)
    run = loop.watch(store=store, probes=None, budget=None)
    loop.on_step(lambda loop, m: loop.save_checkpoint(kept) if loop.n_updates == 6 else None)
    loop.run_epochs(data, EPOCHS)
    run.close()
    again, data = loop_of("mlp", seed=1)
    again.load_checkpoint(kept)
    again.on_step(lambda loop, m: loop.stop() if loop.n_updates == 9 else None)
    with again.watch(store=store, probes=None, budget=None, step=6) as run:
        again.run_epochs(data, EPOCHS)
        assert [event.kind for event in run.events].count("truncate") == 1
        found = run.series("", "loss")
    assert found.step.values.tolist() == [*range(9)]
    assert found.values.tolist() == [
        torch.tensor(entry["loss"]).float().item() for entry in losses[:9]
    ]
    state = torch.load(kept / "step_00000006.pt", weights_only=True)
    assert state["record"] == {"location": str(store), "step": 6}


def test_a_learning_rate_that_was_set_by_hand_goes_on_beside_its_schedule(tmp_path: Path) -> None:
    loop, data = loop_of("mlp")
    trace = traced(loop)
    run = loop.watch(store=tmp_path / "run.zarr", probes=None, budget=None)

    def act(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == 2:
            run.set("lr", 0.5)
        if loop.n_updates == 5:
            loop.save_checkpoint(tmp_path / "kept")

    hook = loop.on_step(act)
    loop.run_epochs(data, EPOCHS)
    run.close()
    hook.remove()
    resumed, data = loop_of("mlp", seed=1)
    again = traced(resumed)
    resumed.load_checkpoint(tmp_path / "kept")
    resumed.run_epochs(data, EPOCHS)
    assert again == trace[5:]
    plain, data = loop_of("mlp")
    other = traced(plain)
    plain.run_epochs(data, EPOCHS)
    assert other[5:] != trace[5:]


def test_a_run_that_is_open_is_not_gone_on_with_at_another_step(tmp_path: Path) -> None:
    loop = a_loop()
    loop.save_checkpoint(tmp_path / "kept")
    with loop.watch(store=tmp_path / "run.zarr", probes=None):
        loop.run_steps(batches(2), 2)
        with pytest.raises(nbp.CheckpointError, match="is at step 2, the checkpoint at step 0"):
            loop.load_checkpoint(tmp_path / "kept")
        assert loop.loop_step == 2


def test_batches_of_a_step_that_raised_are_trained_after_all(tmp_path: Path) -> None:
    """Saved while an error is on its way, as Stop and Ctrl-C leave no such step."""
    seen: list[float] = []
    loop, data = a_loop(accumulate=2), batches(6)

    def broken(module: nn.Module, args: Any) -> None:
        if len(seen) == 3:
            raise OSError("out of something")
        seen.append(float(args[0].sum()))

    hook = loop.trainer.model.register_forward_pre_hook(broken)
    with pytest.raises(OSError, match="out of something"):
        loop.run_epochs(data, 1)
    loop.save_checkpoint(tmp_path)
    hook.remove()
    resumed = a_loop(accumulate=2)
    del seen[2:]
    resumed.trainer.model.register_forward_pre_hook(
        lambda module, args: seen.append(float(args[0].sum()))
    )
    resumed.load_checkpoint(tmp_path)
    resumed.run_epochs(data, 1)
    assert seen == [float(x.sum()) for x, _ in data]


@pytest.mark.filterwarnings("error")
def test_an_epoch_that_was_over_goes_on_with_its_scheduler_and_without_a_warning(
    tmp_path: Path,
) -> None:
    def begun() -> tuple[Loop, Any]:
        loop = a_loop()
        of_epochs = torch.optim.lr_scheduler.StepLR(loop.trainer.optimizer, 1, 0.5)
        loop.on_epoch(lambda loop: of_epochs.step())
        loop.register_state("of_epochs", of_epochs)
        return loop, of_epochs

    first, _ = begun()
    first.on_step(lambda loop, metrics: loop.save_checkpoint(tmp_path))  # before the epoch is over
    first.run_epochs(batches(2), 1)
    again, of_epochs = begun()
    again.load_checkpoint(tmp_path)
    again.run_epochs(batches(2), 2)
    assert (again.loop_step, of_epochs.last_epoch) == (4, 2)
    assert again.trainer.optimizer.param_groups[0]["lr"] == 0.25e-2
