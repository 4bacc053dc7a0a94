"""Beginning and ending: cells run again, models dropped, copies, forks, the interpreter's exit."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import (
    ClosedRunError,
    NotApplicableError,
    RecordFormatError,
    RecordMismatchError,
    RecordWriteError,
)
from tests.models import CASES, ConvNet, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
PATIENCE_S = 30.0


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


def n_hooks(model: nn.Module) -> int:
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


def our_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("notebook")]


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
    assert n_hooks(model) == n_before
    train_step(model, optimizer, batch(1))
    second.close()
    assert first.data.sizes["step"] == 1
    assert second.data.step.values.tolist() == [0]
    assert len(list(Path("runs").iterdir())) == 2


@pytest.mark.parametrize("same_model", [True, False])
def test_watching_again_with_the_same_store_goes_on_after_the_last_step(
    same_model: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = made(mlp)
    first = nbp.watch(model, store=tmp_path / "r.zarr")
    train(model, sgd(model), batch, range(3))
    capsys.readouterr()
    again = model if same_model else made(mlp)
    second = nbp.watch(again, store=tmp_path / "r.zarr")
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
        assert first[quantity].equals(both[0].data[quantity]), quantity


# ---------------------------------------------------------------- dropped


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


# ---------------------------------------------------------------- copies


def deep(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model)


def pickled(model: nn.Module) -> nn.Module:
    return pickle.loads(pickle.dumps(model))


def saved(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [deep, pickled, saved])
def test_a_copy_of_a_watched_model_works_and_is_silent(
    copied: Callable[[nn.Module], nn.Module], watch: Watch
) -> None:
    model = made(ConvNet)
    images = floats(4, 1, 6, 6)
    run = watch(model)
    run.attach("*", "input_norm")
    train_step(model, sgd(model), images(0))
    twin = copied(model)
    train(twin, sgd(twin), images, range(3))
    train_step(model, sgd(model), images(1))
    assert run.data.sizes["step"] == 2
    own = watch(twin)
    train_step(twin, sgd(twin), images(4))
    assert own.data.sizes["step"] == 1


def test_the_state_dict_has_no_other_keys(watch: Watch) -> None:
    model = made(ConvNet)
    before = list(model.state_dict())
    run = watch(model)
    train_step(model, sgd(model), floats(4, 1, 6, 6)(0))
    assert list(model.state_dict()) == before
    model.load_state_dict(made(ConvNet).state_dict())
    train_step(model, sgd(model), floats(4, 1, 6, 6)(1))
    assert run.data.sizes["step"] == 2


def test_optimizers_can_be_saved_copied_and_loaded(watch: Watch) -> None:
    model = made(mlp)
    optimizer = torch.optim.Adam(model.parameters())
    run = watch(model, optimizer)
    train_step(model, optimizer, batch(0))
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    pickle.dumps(optimizer)
    train_step(model, optimizer, batch(1))
    assert run.data.sizes["step"] == 2


# ---------------------------------------------------------------- other processes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_forked_child_is_silent_and_the_parent_goes_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer)
    train(model, optimizer, batch, range(2))
    run.flush()
    child = os.fork()
    if child == 0:  # no pytest in here: leave at once, whatever happens
        code = 1
        try:
            train(model, optimizer, batch, range(3))
            with torch.no_grad():
                model(batch(0))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    train_step(model, optimizer, batch(2))
    run.close()
    assert nbp.open_run(run.location).data.step.values.tolist() == [0, 1, 2]


SCRIPT = """
import torch
from torch import nn
import notebook_probe as nbp

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

def train(model, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(n):
        model(torch.randn(5, 4)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

FOREGROUND = """
first_run = None  # goes after its model
model = build()
first_run = nbp.watch(model, store=STORES[0])
train(model, 5)

def main():
    model = build()
    run = nbp.watch(model, store=STORES[1])
    train(model, 5)

main()
cyclic = build()
cyclic.me = [cyclic]
cyclic.run = [nbp.watch(cyclic, store=STORES[2])]
train(cyclic, 5)
"""

BACKGROUND = """
import threading
from notebook_probe.run.requests import Control

model, held = build(), build()
run, held_run = nbp.watch(model, store=STORES[0]), nbp.watch(held, store=STORES[1])
train(held, 5)
held_run.put(Control("pause"))
held_run.train_in_background(lambda: train(held, 5))
enough = threading.Event()

def loop():
    train(model, 5)
    enough.set()
    train(model, 10**9)

run.train_in_background(loop)
assert enough.wait(60)
"""


@pytest.mark.parametrize(("script", "n_runs"), [(FOREGROUND, 3), (BACKGROUND, 2)])
def test_the_interpreter_exits_in_silence_and_the_records_are_whole(
    script: str, n_runs: int, tmp_path: Path
) -> None:
    stores = [str(tmp_path / f"{i}.zarr") for i in range(n_runs)]
    done = subprocess.run(
        [sys.executable, "-c", f"STORES = {stores!r}\n{SCRIPT}{script}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for store in stores:
        record = nbp.open_run(store)
        assert record.finished
        assert record.data.sizes["step"] >= 5


# ---------------------------------------------------------------- bad input


def test_what_is_no_model_is_refused(watch: Watch) -> None:
    with pytest.raises(TypeError, match=r"watch\(str\): a torch.nn.Module is expected"):
        nbp.watch("model")  # type: ignore[arg-type]


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"watch\(..., str\): a torch.optim.Optimizer is"):
        nbp.watch(made(mlp), "adam")  # type: ignore[arg-type]


def test_another_models_optimizer_is_refused() -> None:
    with pytest.raises(NotApplicableError, match="SGD owns none of the 4 parameters of Sequential"):
        nbp.watch(made(mlp), sgd(made(ConvNet)))


def test_the_record_of_another_model_is_left_as_it_is(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    with watch(model, store=tmp_path / "r.zarr") as run:
        train(model, sgd(model), batch, range(2))
    other = made(ConvNet)
    with pytest.raises(RecordMismatchError, match="holds the record of another model"):
        watch(other, store=tmp_path / "r.zarr")
    assert n_hooks(other) == 0
    assert nbp.open_run(run.location).data.sizes["step"] == 2


def test_a_foreign_folder_is_left_as_it_is(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    model = made(mlp)
    with pytest.raises(RecordFormatError, match="thesis is a folder with other files"):
        watch(model, store=tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]
    assert n_hooks(model) == 0


def test_a_path_that_cannot_be_written_is_refused(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = made(mlp)
    with pytest.raises(RecordWriteError, match="cannot make the folder"):
        watch(model, store=tmp_path / "file" / "r.zarr")
    with pytest.raises(RecordFormatError, match="file is a file, not a record"):
        watch(model, store=tmp_path / "file")
    assert n_hooks(model) == 0
    assert our_threads() == []


def test_a_failed_watch_leaves_the_model_usable(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    with pytest.raises(nbp.UnknownNameError):
        watch(model, probes={"nowhere": ["weight_norm"]}, store=tmp_path / "r.zarr")
    assert not (tmp_path / "r.zarr").exists()
    run = watch(model, store=tmp_path / "r.zarr")
    train_step(model, sgd(model), batch(0))
    assert run.data.sizes["step"] == 1


def test_a_wrapper_means_the_model_inside(watch: Watch) -> None:
    model = made(mlp)
    run = watch(nn.DataParallel(model))
    train_step(model, sgd(model), batch(0))
    assert run.data.module.values.tolist() == ["0", "1", "2"]
