"""A script that trains in another process until it is stopped, and allows control."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Protocol

from tests.run.programs import Programs

__all__ = ["EndlessTraining", "endless_training"]

PROGRAM = """
import sys, time
import torch
from torch import nn
import notebook_probe as nbp
from notebook_probe.run.remote_control import mail_server, places

if sys.argv[2] == "mailbox":
    places._folders = list
    mail_server.READ_S = 0.05  # it is read once a second, for which a dozen requests would wait
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
probes = {"0": ["grad_norm"]}
run = nbp.watch(model, optimizer, store=sys.argv[1], name="elsewhere", probes=probes, budget=None)
print("ready", flush=True)
try:
    while True:
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        run.log(loss=loss.item())
        time.sleep(0.001)
except nbp.TrainingStopped:
    run.close()
    print(f"stopped {optimizer.param_groups[0]['lr']}", flush=True)
"""


class TrainingProcess(Protocol):
    """A process that prints."""

    @property
    def stdout(self) -> IO[str] | None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class EndlessTraining:
    """The process of a training, and the place of its record."""

    def __init__(self, process: TrainingProcess, place: Path | str) -> None:
        self._process, self.place = process, str(place)

    def last_line(self) -> str:
        """Wait until it ends by itself; return the last line that it printed."""
        assert self._process.stdout is not None
        return self._process.stdout.read().splitlines()[-1]

    def wait_ready(self) -> None:
        """Wait until its model is watched."""
        assert self._process.stdout is not None
        assert any(line == "ready\n" for line in self._process.stdout)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def endless_training(
    place: Path | str,
    way: str = "socket",
    control: str = "1",
    environment: Mapping[str, str] = MappingProxyType({}),
    programs: Programs | None = None,
) -> Iterator[EndlessTraining]:
    """Start the script, wait for its run, and kill it at the end.

    ``environment`` is added to that of the tests, such as the keys of a store. With ``programs``
    the script need not import torch, which takes seconds.
    """
    given = {**os.environ, "NOTEBOOK_PROBE_CONTROL": control, **environment}
    one = EndlessTraining(
        interpreter(place, way, given)
        if programs is None
        else programs.begin(PROGRAM, str(place), way, environment=given),
        place,
    )
    try:
        one.wait_ready()
        yield one
    finally:
        one.kill()


def interpreter(place: Path | str, way: str, environment: Mapping[str, str]) -> TrainingProcess:
    """Start the script in a separate interpreter."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place), way],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
