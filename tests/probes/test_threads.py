"""Threads, forks and exits round a training that is watched."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.utils.data import DataLoader, Dataset

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Attach, Detach
from tests.models import floats, loss_of, made, mlp, sgd, train_step
from tests.probes.parameters.optimizer_oracles import Diary, check, play, probes_everywhere
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.loops import wait_until
from tests.run.programs import Programs

batch = floats(5, 4)
PATIENCE_S = 60.0


class Threads:
    """Runs functions side by side; an error in any of them is raised at the end."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self, function: Callable[[], object]) -> None:
        def run() -> None:
            try:
                function()
            except BaseException as error:
                self._errors.append(error)

        self._threads.append(thread := threading.Thread(target=run, daemon=True))
        thread.start()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        if self._errors:
            raise self._errors[0]


# ---------------------------------------------------------------- changes from another thread


def toggle_probes(run: nbp.Run, cycle: int) -> None:
    handle = run.attach("*", ["input_std", "output_mean"], f"every({1 + cycle % 3})")
    handle.remove()


def toggle_by_request(run: nbp.Run, cycle: int) -> None:
    run.controls.put(Attach(("1",), "output_std", f"every({1 + cycle % 2})"))
    ticket = run.controls.put(Detach(("1",), "output_std"))
    until = time.monotonic() + 0.05  # the training may be waiting for this very cycle
    while ticket.state == "queued" and time.monotonic() < until:
        time.sleep(0.001)


def look(run: nbp.Run, cycle: int) -> None:
    run.data.load()
    run.probes()
    str(run.status())


def watch_again(run: nbp.Run, cycle: int) -> None:
    """Optimizer hooks of other runs come and go while this one's optimizer steps."""
    with torch.random.fork_rng():
        other = mlp()
    store = f"{run.location}-{cycle}"
    nbp.watch(other, store=store).close()


@pytest.mark.slow
@pytest.mark.parametrize("disturb", [toggle_probes, toggle_by_request, look, watch_again])
def test_a_storm_from_another_thread_loses_no_step_and_changes_no_value(
    disturb: Callable[[nbp.Run, int], None], watch: Watch
) -> None:
    runs: list[nbp.Run] = []
    over = threading.Event()
    cycles = [0]

    def storm() -> None:
        while not over.is_set():
            disturb(runs[0], cycles[0])
            cycles[0] += 1

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        chosen = {place: names for place, names in probes_everywhere(model).items()
                  if place != "1"}  # fmt: skip
        runs.append(watch(model, probes=chosen))
        return runs[0]

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        threads = Threads()
        try:
            for step in range(40):
                optimizer.zero_grad()
                loss_of(model(batch(step))).backward()
                with diary.update(optimizer):
                    optimizer.step()
                if not diary.alone and step == 0:
                    threads.start(storm)
                if not diary.alone and step % 10 == 5:  # a busy machine may not get round to it
                    seen = cycles[0]
                    wait_until(lambda seen=seen: cycles[0] > seen)  # type: ignore[misc]
        finally:
            if not diary.alone:
                over.set()
        threads.wait()
        return [optimizer]

    run, diary = play(mlp, loop, begin)
    run.controls.settle()
    steady = probes_everywhere(made(mlp))
    expected, data = diary.expected(), run.data.load()
    assert data.step.values.tolist() == list(range(40))
    for place in steady:
        for quantity in steady[place] if place != "1" else []:
            wanted = list(expected[place, quantity].values())
            np.testing.assert_allclose(
                data[quantity].sel(module=place), wanted, rtol=1e-5, err_msg=f"{quantity} {place}"
            )
    assert not run.status().problem
    assert not run.status().errors


# ---------------------------------------------------------------- training in several threads


@pytest.mark.slow
def test_models_in_threads_of_their_own_have_whole_records(watch: Watch) -> None:
    """Each thread's steps are its own, one call each; the twins train one after the other."""
    seeds = range(3)
    diaries, runs, left = [], [], []

    def train(seed: int, model: nn.Module, diary: Diary) -> dict[str, bytes]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(15):
            optimizer.zero_grad()
            loss_of(model(batch(100 * seed + step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        kept = everything(model, [optimizer])
        del kept["random state"]  # of the whole process
        return kept

    for seed in seeds:
        alone = made(mlp, seed)
        diaries.append(Diary(alone, alone=True))
        left.append(train(seed, alone, diaries[-1]))
    models = [made(mlp, seed) for seed in seeds]
    runs = [watch(model, probes=probes_everywhere(model)) for model in models]
    threads, found = Threads(), {}
    start = threading.Barrier(len(seeds))

    def in_thread(seed: int) -> None:
        start.wait(PATIENCE_S)
        found[seed] = train(seed, models[seed], Diary(models[seed], alone=False))

    for seed in seeds:
        threads.start(lambda seed=seed: in_thread(seed))  # type: ignore[misc]
    threads.wait()
    for seed in seeds:
        assert differing(left[seed], found[seed]) == []
        check(runs[seed], diaries[seed])
        assert runs[seed].data.calls.max() == 1


def test_threads_that_train_one_model_together_break_nothing(watch: Watch) -> None:
    """Hogwild: no order is promised, so values are only whole: every call and step is counted."""
    # One layer: deeper ones torch itself refuses, as weights change between forward and backward.
    model = made(lambda: nn.Sequential(nn.Linear(4, 2)))
    run = watch(model, probes=probes_everywhere(model))
    threads = Threads()

    def train(seed: int) -> None:
        optimizer = SGD(model.parameters(), lr=0.001)
        for step in range(30):
            loss_of(model(batch(100 * seed + step))).backward()
            optimizer.step()

    for seed in range(3):
        threads.start(lambda seed=seed: train(seed))  # type: ignore[misc]
    threads.wait()
    run.controls.settle()
    steps = run.data.step.values
    assert 1 <= len(steps) <= 90
    assert (np.diff(steps) == 1).all()
    assert float(run.data.calls.sel(module="0").sum()) <= 90
    problem = run.status().problem
    assert problem == "" or problem.startswith("several threads trained this model")
    assert not run.status().errors
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert len(run.data.step) == len(steps) + 1


def test_a_backward_in_another_thread_belongs_to_the_step_of_its_forward(watch: Watch) -> None:
    """Only the phase is the thread's own; gradients know which step they belong to."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            loss = loss_of(model(batch(step)))
            threads = Threads()
            threads.start(loss.backward)
            threads.wait()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    check(*play(mlp, loop, watch))


def test_an_evaluation_in_another_thread_is_no_part_of_the_training(watch: Watch) -> None:
    """It runs the watched model itself, without gradients, all the while."""
    over = threading.Event()
    n_evaluated = [0]

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        threads = Threads()

        def evaluate() -> None:
            while not over.is_set():
                with torch.no_grad():
                    model(1e6 * batch(99))
                n_evaluated[0] += 1

        if not diary.alone:
            threads.start(evaluate)
        try:
            for step in range(20):
                optimizer.zero_grad()
                loss_of(model(batch(step))).backward()
                with diary.update(optimizer):
                    optimizer.step()
                if not diary.alone and step == 10:
                    wait_until(lambda: n_evaluated[0] > 3)
        finally:
            if not diary.alone:
                over.set()
        threads.wait()
        return [optimizer]

    check(*play(mlp, loop, watch))


# ---------------------------------------------------------------- forks


class Features(Dataset[Tensor]):
    """Asks the very model that is trained, as some samplers and augmentations do."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Tensor:
        with torch.no_grad():
            self.model(1e6 * batch(i))
        with torch.enable_grad():
            loss_of(self.model(1e6 * batch(i))).backward()
        return batch(i)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_run_the_model_are_silent_and_do_not_hang(
    persistent: bool, watch: Watch
) -> None:
    """Also the workers that begin while a step is open and a probe waits for the next one."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        source: Any = [batch(i) for i in range(6)]
        if not diary.alone:
            source = DataLoader(
                Features(model),
                batch_size=None,
                num_workers=2,
                multiprocessing_context="fork",
                persistent_workers=persistent,
                timeout=PATIENCE_S,
                generator=torch.Generator(),
            )
        for _ in range(2):
            for given in source:
                optimizer.zero_grad()
                loss_of(model(given)).backward()
                with diary.update(optimizer):
                    optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    run.close()
    stored = nbp.open_run(run.location)
    assert stored.data.step.values.tolist() == list(range(12))


# ---------------------------------------------------------------- exits

SCRIPT = """
import sys
import torch
from torch import nn
import notebook_probe as nbp

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = nbp.watch(model, store=sys.argv[1])

def step():
    model(torch.randn(5, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

for _ in range(5):
    step()
"""

ENDS: dict[str, tuple[str, int, str]] = {
    "in the middle of a step": ("output = model(torch.randn(5, 4))", 0, ""),
    "by sys.exit": ("del optimizer\nsys.exit(3)", 3, ""),
    "by an error inside a step": (
        "model.register_forward_hook(lambda *args: 1 / 0)\nstep()",
        1,
        "ZeroDivisionError: division by zero",
    ),
    "while the exit still trains": ("import atexit\natexit.register(step)", 0, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_exits_as_the_users_program_does(
    end: str, programs: Programs, tmp_path: Path
) -> None:
    """Its own code and its own traceback, and not one line from us; the record is whole."""
    last_words, code, error = ENDS[end]
    store = str(tmp_path / "r.zarr")
    done = programs.run(SCRIPT + last_words, store)
    lines = done.stderr.strip().splitlines()
    assert (done.code, lines[-1] if lines else "") == (code, error)
    assert "Exception ignored" not in done.stderr
    assert "notebook_probe" not in done.stderr
    stored = nbp.open_run(store)
    assert stored.finished
    assert stored.data.step.values.tolist()[:5] == [0, 1, 2, 3, 4]
