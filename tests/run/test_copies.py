"""Copies, forks and the interpreter's exit."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from tests.copies import deep, pickled, saved
from tests.models import ConvNet, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.programs import Programs

batch = floats(5, 4)


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
from notebook_probe.run.attach.requests import Control

model, held = build(), build()
run, held_run = nbp.watch(model, store=STORES[0]), nbp.watch(held, store=STORES[1])
train(held, 5)
held_run.controls.put(Control("pause"))
held_run.train_in_background(lambda: train(held, 5))
enough = threading.Event()

def loop():
    train(model, 5)
    enough.set()
    train(model, 10**9)

run.train_in_background(loop)
assert enough.wait(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("script", "n_runs"), [(FOREGROUND, 3), (BACKGROUND, 2)])
def test_the_interpreter_exits_in_silence_and_the_records_are_whole(
    script: str, n_runs: int, programs: Programs, tmp_path: Path
) -> None:
    stores = [str(tmp_path / f"{i}.zarr") for i in range(n_runs)]
    assert programs.run(f"STORES = {stores!r}\n{SCRIPT}{script}") == (0, "")
    for store in stores:
        record = nbp.open_run(store)
        assert record.finished
        assert record.data.sizes["step"] >= 5
