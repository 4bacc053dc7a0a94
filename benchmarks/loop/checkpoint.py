"""What a save in the background takes from training, beside one copy of its tensors.

A small layer is trained; what makes the checkpoint large is frozen, so that a step is short beside
a copy. One run of the loop saves for the first time, another one has saved before, as those that
follow are copied into the memory of the first; their twin never saves. What is compared is the time
from the step before the save to the last step, while a thread writes: CPU time of the training
thread, and wall time, which also has what the writer takes from it. Waiting for the writer after
the last step does not count. Before each turn what was freed is handed back to the system: memory
that is used again takes a third of the time to write to, of which either would profit by chance.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.loop.turns import in_turns
from benchmarks.table import Table
from notebook_probe.train import Checkpoints, Loop, Trainer

__all__ = ["run"]

Clock: TypeAlias = Callable[[], float]
Data: TypeAlias = list[tuple[Tensor, Tensor]]

TENSORS, BEFORE, SAVED = 25, 2, 10


class _Large(nn.Linear):
    def __init__(self, mb: float) -> None:
        super().__init__(16, 4)
        n = round(mb * 1e6 / 4 / TENSORS)
        for index in range(TENSORS):
            self.register_buffer(f"frozen{index}", torch.randn(n))


class _Clock:
    """Seconds from the step before the save to the last one."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.seconds = clock, 0.0

    def on_step(self, loop: Loop, metrics: Any) -> None:
        if loop.n_updates == SAVED - 1:
            loop.kept.wait()  # for what was saved before
            self.seconds = -self._clock()

    def on_end(self, loop: Loop, metrics: Any) -> None:
        self.seconds += self._clock()


def run(chosen: argparse.Namespace) -> None:
    """Print a line for either clock."""
    model = _Large(chosen.mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    trainer = Trainer(model, nn.functional.cross_entropy, optimizer)
    data = [(torch.randn(8, 16), torch.randint(0, 4, (8,)))] * (SAVED + chosen.steps)
    print(f"a checkpoint of {chosen.mb:g} MB: ms that a save takes from training\n")
    widths = {"clock": 6, "which": 8, "save": 7, "clone()": 7, "ratio": 6, "target": 6, "met": 3}
    table = Table(widths)
    for name, clock in {"CPU": time.thread_time, "wall": time.perf_counter}.items():
        low = _low(trainer, data, clock, chosen.turns)
        for which in ("first", "another"):
            stolen, copy = low[which] - low["without"], low["clone"]
            met = "yes" if stolen <= copy else "NO"
            row = f"{1e3 * stolen:.1f}", f"{1e3 * copy:.1f}", f"{stolen / copy:.2f}", "<= 1", met
            table.row(name, which, *row)


def _low(trainer: Trainer, data: Data, clock: Clock, turns: int) -> dict[str, float]:
    def trained(*callbacks: object) -> float:
        loop, clocked = Loop(trainer, progress=False), _Clock(clock)
        for callback in (*callbacks, clocked):
            loop.add(callback)
        _hand_back()
        loop.run_steps(data, len(data))
        return clocked.seconds

    def cloned() -> float:
        _hand_back()
        begun = clock()
        copies = [value.clone() for value in trainer.model.state_dict().values()]
        seconds = clock() - begun
        del copies
        return seconds

    with tempfile.TemporaryDirectory() as folder:

        def saving(*steps: int) -> float:
            return trained(Checkpoints(folder, every=lambda step: step in steps, keep_last=1))

        variants = {
            "first": lambda: saving(SAVED),
            "another": lambda: saving(BEFORE, SAVED),
            "without": trained,
            "clone": cloned,
        }
        return in_turns(variants, turns)


def _hand_back() -> None:
    """Freed memory, to the system."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
