"""Every verb on a run that another process is training."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
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
    run.alerts
    run.flush()
    print("trained", flush=True)
run.close()
print("closed", flush=True)
"""


class TrainingProcess:
    """A process that trains as many steps as it is told."""

    def __init__(self, process: subprocess.Popen[str], place: Path) -> None:
        self._process, self.place = process, str(place)

    def train(self, n_steps: int, word: str = "train") -> None:
        self._write(f"{word} {n_steps}\n")
        assert self._read() == "trained"

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._read() == "closed"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[TrainingProcess]:
    """A training that has done forty steps, and waits."""
    place = tmp_path / "live.zarr"
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, HOME: str(tmp_path / "home")},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        one = TrainingProcess(process, place)
        one.train(40)
        try:
            yield one
        finally:
            one.kill()


def test_verbs_read_what_is_recorded_so_far(
    training: TrainingProcess, answer: Answered, ask: Asked
) -> None:
    place = training.place
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


def test_they_see_what_is_recorded_later(training: TrainingProcess, answer: Answered) -> None:
    training.train(20)
    assert answer("explain", training.place)["steps"] == 60
    training.close()
    assert answer("explain", training.place)["state"] == "finished"


def test_a_fault_is_found_while_it_trains(
    training: TrainingProcess, answer: Answered, ask: Asked
) -> None:
    training.train(5, "spoil")
    assert ask("alerts", training.place, "--fail-on", "severe")[0] == 3
    (cause,) = answer("explain", training.place)["causes"]
    assert cause["alert"]["step"] == 40
    assert {one["rule"] for one in cause["consequences"]} >= {"nonfinite_loss"}
    code, out, _ = ask("follow", training.place, "--until", "severe", "--timeout", "60")
    assert code == 3
    assert strict_json(out.splitlines()[-1])["state"] == "running"


def test_a_killed_training_is_told(training: TrainingProcess, ask: Asked) -> None:
    training.kill()
    code, out, _ = ask("follow", training.place, "--until", "finished", "--timeout", "60")
    end = strict_json(out.splitlines()[-1])
    assert (code, end["reason"], end["steps"]) == (0, "killed", 40)


def test_a_request_to_terminate_still_has_an_end(training: TrainingProcess) -> None:
    words = [sys.executable, "-m", "notebook_probe", "follow", training.place, "--timeout", "100"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert strict_json(following.stdout.readline())["kind"] == "start"
        following.terminate()
        end = strict_json(following.stdout.read())
    assert (end["kind"], end["reason"]) == ("end", "interrupted")
    assert following.returncode == 130


ANSWERING = """
import sys
from notebook_probe.command_line import main
main(sys.argv[1:])
assert not {"torch", "matplotlib", "IPython", "sqlalchemy"} & {*sys.modules}, [*sys.modules]
"""


@pytest.mark.parametrize(
    "words",
    [["explain"], ["series", "*", "*norm"], ["tree"], ["alerts"], ["plot", "*", "loss", "--ascii"]],
    ids=lambda words: words[0],
)
def test_a_verb_loads_no_library_that_it_does_not_need(
    training: TrainingProcess, words: list[str]
) -> None:
    verb, *rest = words
    done = subprocess.run(
        [sys.executable, "-c", ANSWERING, verb, training.place, *rest],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
