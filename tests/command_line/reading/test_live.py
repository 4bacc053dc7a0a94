"""Every verb on a run that another process is training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.home import HOME
from tests.command_line.reading.conftest import Answered, Asked, strict_json

pytestmark = pytest.mark.slow

TRAINING = """
import sys
import torch
from torch import nn
import notebook_probe as nbp

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
run = nbp.watch(model, optimizer, store=sys.argv[1], name="live", budget=None)
print("ready", flush=True)
for line in sys.stdin:
    word, n_steps = line.split()
    for _ in range(int(n_steps)):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        if word == "spoil":
            loss = loss * float("nan")
        loss.backward()
        optimizer.step()
        run.log(loss=loss.item())
        run.step()
    run.alerts
    run.flush()
    print("trained", flush=True)
run.close()
print("closed", flush=True)
"""


class TrainingProcess:
    """A process that trains a given number of steps."""

    def __init__(self, process: subprocess.Popen[str], place: Path) -> None:
        self._process, self.place = process, str(place)

    def train(self, n_steps: int, word: str = "train") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {n_steps}\n")
        self._process.stdin.flush()
        self.read_until("trained")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.read_until("closed")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def read_until(self, word: str) -> None:
        assert self._process.stdout is not None
        assert any(line == f"{word}\n" for line in self._process.stdout)


@contextmanager
def training_below(folder: Path) -> Iterator[TrainingProcess]:
    """A training that has done forty steps, and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(folder / "live.zarr")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, HOME: str(folder / "home")},
    ) as process:
        one = TrainingProcess(process, folder / "live.zarr")
        try:
            one.train(40)
            yield one
        finally:
            one.kill()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[TrainingProcess]:
    with training_below(tmp_path) as one:
        yield one


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainingProcess]:
    """The same for tests that only read."""
    with training_below(tmp_path_factory.mktemp("waiting")) as one:
        yield one


def test_verbs_read_what_is_recorded_so_far(
    waiting: TrainingProcess, answer: Answered, ask: Asked
) -> None:
    place = waiting.place
    (line,) = answer("series", place, "", "loss")["series"]
    with xr.open_zarr(place, group="scalars/every_1") as stored:
        oracle = stored.loss.sel(module="(root)").to_numpy()
        norms = stored.weight_norm.sel(module="0").to_numpy()
    assert [step for step, _ in line["points"]] == [*range(40)]
    assert [np.float32(value) for _, value in line["points"]] == oracle.tolist()
    (line,) = answer("series", place, "0", "weight_norm", "--last", "5")["series"]
    assert [np.float32(value) for _, value in line["points"]] == norms[-5:].tolist()
    explained = answer("explain", place)
    assert (explained["state"], explained["steps"], explained["causes"]) == ("running", 40, [])
    assert [one["class_name"] for one in answer("tree", place)["modules"]] == [
        "Sequential",
        "Linear",
        "ReLU",
        "Linear",
    ]
    assert "grad_norm" in {one["name"] for one in answer("quantities", place)["recorded"]}
    assert ask("alerts", place, "--fail-on", "remark")[0] == 0
    assert len(answer("plot", place, "", "loss", "--ascii")["series"][0]["line"]) == 40


def test_they_see_more_as_it_trains_and_the_fault_at_once(
    training: TrainingProcess, answer: Answered, ask: Asked
) -> None:
    training.train(20)
    assert answer("explain", training.place)["steps"] == 60
    training.train(5, "spoil")
    assert ask("alerts", training.place, "--fail-on", "severe")[0] == 3
    (cause,) = answer("explain", training.place)["causes"]
    assert cause["alert"]["step"] == 60
    code, out, _ = ask("follow", training.place, "--until", "severe", "--timeout", "60")
    assert (code, strict_json(out.splitlines()[-1])["state"]) == (3, "running")
    training.close()
    assert answer("explain", training.place)["state"] == "finished"


def test_a_killed_training_is_told(training: TrainingProcess, ask: Asked) -> None:
    training.kill()
    code, out, _ = ask("follow", training.place, "--until", "finished", "--timeout", "60")
    end = strict_json(out.splitlines()[-1])
    assert (code, end["reason"], end["steps"]) == (0, "killed", 40)


def test_a_request_to_terminate_still_has_an_end(waiting: TrainingProcess) -> None:
    words = [sys.executable, "-m", "notebook_probe", "follow", waiting.place, "--timeout", "100"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert strict_json(following.stdout.readline())["kind"] == "start"
        following.terminate()
        end = strict_json(following.stdout.read())
    assert (end["kind"], end["reason"]) == ("end", "interrupted")
    assert following.returncode == 130


ANSWERING = """
import json, sys
from notebook_probe.command_line import main

for words in json.loads(sys.argv[1]):
    main(words)
assert not {"torch", "matplotlib", "IPython", "sqlalchemy"} & {*sys.modules}, [*sys.modules]
"""


def test_verbs_load_no_library_that_they_do_not_need(waiting: TrainingProcess) -> None:
    place = waiting.place
    every = [
        ["explain", place],
        ["alerts", place],
        ["series", place, "*", "*norm"],
        ["tree", place],
        ["quantities", place],
        ["plot", place, "*", "loss", "--ascii"],
        ["follow", place, "--timeout", "0"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", ANSWERING, json.dumps(every)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("live: running, 40 steps") == 5
