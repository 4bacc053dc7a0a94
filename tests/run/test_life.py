"""Beginning and ending: cells run again, models dropped, copies, forks, the interpreter's exit."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import (
    ClosedRunError,
)
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.record import RecordWriter
from tests.models import CASES, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.traces import n_hooks, our_threads

batch = floats(5, 4)
PATIENCE_S = 60.0


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll, because what is awaited is the garbage collector and threads."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        gc.collect()
        time.sleep(0.005)


def hooks_of(model: nn.Module) -> list[dict[str, Any]]:
    """Everything on every module that hooks may leave something in."""
    kept = []
    for module in model.modules():
        state = {name: value for name, value in vars(module).items() if name != "_modules"}
        kept.append({name: dict(value) if isinstance(value, dict) else value
                     for name, value in state.items()})  # fmt: skip
    return kept


# ---------------------------------------------------------------- close


@pytest.mark.parametrize("kind", ["convolution", "recurrent", "transformer"])
def test_close_leaves_the_model_as_it_was(kind: str, watch: Watch) -> None:
    case = CASES[kind]
    model = made(case.build)
    optimizer = sgd(model, lr=0.0)
    train_step(model, optimizer, case.batch(0))
    model.eval()  # BatchNorm's running statistics would move
    before = hooks_of(model)
    run = watch(model, optimizer)
    run.attach("*", ["input_norm", "output_norm"])
    assert n_hooks(model) > 0
    train(model, optimizer, case.batch, range(2))
    run.close()
    after = hooks_of(model)
    assert [list(state) for state in after] == [list(state) for state in before]
    assert n_hooks(model) == 0
    for old, new in zip(before, after, strict=True):
        for name in old:
            if "hook" in name:
                assert new[name] == old[name], name


def test_close_twice_is_fine_and_ends_every_thread(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(2))
    run.close()
    run.close()
    assert our_threads() == []
    train(model, sgd(model), batch, range(2))
    assert run.data.sizes["step"] == 2
    assert run.status().dropped_rows == 0


def test_with_closes_also_after_an_error(tmp_path: Path) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    train_step(model, sgd(model), batch(0))
    with pytest.raises(ValueError, match="the user's"), run:
        raise ValueError("the user's")
    assert run.closed
    assert nbp.open_run(run.location).data.sizes["step"] == 1


@pytest.mark.slow
def test_twenty_cycles_pile_nothing_up(tmp_path: Path) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    for cycle in range(20):
        probes = {"*": ["output_norm", "output_grad_norm"]}
        run = nbp.watch(model, store=tmp_path / f"{cycle % 3}.zarr", probes=probes)
        train_step(model, optimizer, batch(cycle))
        if cycle % 2:
            run.attach("*", "input_norm")
            train_step(model, optimizer, batch(cycle))
        run.close()
    assert n_hooks(model) == 0
    assert our_threads() == []
    del run
    gc.collect()
    assert not [o for o in gc.get_objects() if type(o) is nbp.Run and not o.closed]


def test_an_empty_record_of_our_own_choosing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = made(mlp)
    run = nbp.watch(model, name="My net/1")
    said = capsys.readouterr().out
    folder = Path(run.location)
    assert said == f"recording to {folder.relative_to(tmp_path)}\n"
    assert folder.parent == tmp_path / "runs"
    assert folder.name.startswith("My-net-1-")
    assert folder.exists()
    run.close()
    assert not folder.exists()


def test_a_record_the_user_chose_stays_even_when_it_is_empty(watch: Watch) -> None:
    run = watch(made(mlp))
    run.close()
    assert Path(run.location).exists()


# ---------------------------------------------------------------- cells run again


def test_watching_again_to_a_fresh_folder_ends_the_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = made(mlp)
    optimizer = sgd(model)
    first = nbp.watch(model)
    train_step(model, optimizer, batch(0))
    n_before = n_hooks(model)
    second = nbp.watch(model)
    assert first.closed
    assert not second.closed
    train_step(model, optimizer, batch(1))
    assert n_hooks(model) == n_before
    second.close()
    assert first.data.sizes["step"] == 1
    assert second.data.step.values.tolist() == [0]
    assert len(list(Path("runs").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("same_model", [True, False])
def test_watching_again_with_the_same_store_goes_on_after_the_last_step(
    same_model: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = made(mlp)
    first = nbp.watch(model, store=tmp_path / "r.zarr")
    train(model, sgd(model), batch, range(3))
    capsys.readouterr()
    again = model if same_model else made(mlp)
    second = nbp.watch(again, store=tmp_path / "r.zarr", resume=None if same_model else True)
    assert first.closed
    assert capsys.readouterr().out == f"continuing {second.location} after step 2\n"
    assert second.status().step == 3
    train(again, sgd(again), batch, range(2))
    assert second.data.step.values.tolist() == [0, 1, 2, 3, 4]
    second.close()
    assert nbp.open_run(second.location).series("0", "weight_norm").sizes["step"] == 5


def test_two_runs_with_stores_of_their_own_live_side_by_side(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    both = watch(model), watch(model)
    train(model, optimizer, batch, range(2))
    both[0].close()
    train(model, optimizer, batch, range(2))
    assert both[0].data.sizes["step"] == 2
    assert both[1].data.sizes["step"] == 4
    first = both[1].data.isel(step=slice(2))
    for quantity in first.data_vars:
        np.testing.assert_array_equal(first[quantity], both[0].data[quantity])


# ---------------------------------------------------------------- dropped


@pytest.mark.slow
def test_a_dropped_model_is_freed_and_its_record_finished(tmp_path: Path) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    train(model, sgd(model), batch, range(3))
    parts = [weakref.ref(part) for part in (model, *model.modules(), *model.parameters())]
    del model
    wait_until(lambda: run.finished)
    wait_until(lambda: not any(part() is not None for part in parts))
    assert run.data.sizes["step"] == 3
    assert nbp.open_run(run.location).finished
    with pytest.raises(ClosedRunError, match="because its model no longer exists"):
        run.attach("0", "weight_norm")


def test_closing_waits_for_the_end_that_a_dropped_model_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mlp()
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    begun, may_end, order = threading.Event(), threading.Event(), []
    close = RecordWriter.close

    def slowly(writer: RecordWriter) -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        close(writer)
        order.append("ended")

    monkeypatch.setattr(RecordWriter, "close", slowly)
    del model
    wait_until(begun.is_set)

    def close_it() -> None:
        run.close()
        order.append("closed")

    closer = threading.Thread(target=close_it)
    closer.start()
    closer.join(0.1)  # comes back at once where nobody waits
    may_end.set()
    closer.join(PATIENCE_S)
    assert order == ["ended", "closed"]


@pytest.mark.parametrize("flushes", [False, True])
def test_reading_waits_until_the_last_step_of_a_dropped_model_is_recorded(
    flushes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither open nor recorded for a moment: a function that trains may return its run."""
    closed, may_record = threading.Event(), threading.Event()
    publish = ClosedSteps.publish

    def slowly(steps: ClosedSteps, frame: StepFrame) -> None:
        if frame.step == 2:
            closed.set()
            may_record.wait(PATIENCE_S)
        publish(steps, frame)

    monkeypatch.setattr(ClosedSteps, "publish", slowly)

    def trained() -> nbp.Run:
        model = made(mlp)
        run = nbp.watch(model, store=tmp_path / "r.zarr")
        train(model, sgd(model), batch, range(3))
        return run

    run, found = trained(), list[int]()

    def read() -> None:
        if flushes:
            run.flush()
        found.append(run.data.sizes["step"])

    wait_until(closed.is_set)
    reader = threading.Thread(target=read)
    reader.start()
    reader.join(0.1)  # comes back at once where nobody waits
    may_record.set()
    reader.join(PATIENCE_S)
    assert found == [3]


def test_a_dropped_layer_that_was_watched_alone_is_freed(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    train_step(model, sgd(model), batch(0))
    gone = weakref.ref(model)
    del model
    wait_until(lambda: gone() is None)
    wait_until(lambda: run.closed)


def test_a_closed_run_keeps_no_weights_alive(tmp_path: Path) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    train(model, sgd(model), batch, range(2))
    run.close()
    parts = [weakref.ref(part) for part in (*model.modules(), *model.parameters())]
    del model
    gc.collect()
    assert [part() for part in parts if part() is not None] == []
    assert run.probes(), "what became of the probes can still be read"


def test_a_model_is_freed_by_reference_counting_alone(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        model = made(mlp)
        run = nbp.watch(model, store=tmp_path / "r.zarr")
        with torch.no_grad():
            model(batch(0))
        gone = weakref.ref(model)
        del model
        assert gone() is None
    finally:
        gc.enable()
    wait_until(lambda: run.closed)


def test_activations_of_a_forward_without_backward_are_freed_at_once(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    run.attach("*", "input_norm")
    gc.disable()
    try:
        output = model(batch(0))
        gone = weakref.ref(output)
        del output
        assert gone() is None
    finally:
        gc.enable()


def test_a_dropped_run_takes_its_hooks_off(tmp_path: Path) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr")
    train_step(model, sgd(model), batch(0))
    del run
    wait_until(lambda: n_hooks(model) == 0 and our_threads() == [])
    train_step(model, sgd(model), batch(1))
    assert nbp.open_run(tmp_path / "r.zarr").data.sizes["step"] == 1


def test_a_finished_training_function_keeps_nothing_alive(watch: Watch) -> None:
    class Loader:
        pass

    run = watch(made(mlp))
    loader = Loader()
    gone = weakref.ref(loader)
    run.train_in_background(partial(str, loader)).wait(PATIENCE_S)
    del loader
    wait_until(lambda: gone() is None)
