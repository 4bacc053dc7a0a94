"""A training that saves as often as it can, until it is killed."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import torch

from notebook_probe.train import Checkpoints
from tests.train.checkpoints.kinds import loop_of

__all__ = ["Life"]

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


def train(folder: Path, saved: Any) -> None:
    """Go on from what is there; ``saved`` follows what is known to be written."""
    torch.set_num_threads(1)
    loop, data = loop_of("mlp", scheduler=None)
    if folder.exists() and any(folder.glob("step_*")):
        loop.load_checkpoint(folder)
    loop.add(Checkpoints(folder, every=1, keep_last=3))

    def tell(loop: Any, metrics: Any) -> None:
        saved.value = loop.n_updates - 1  # the save of this step has waited for it

    loop.on_step(tell, priority=200)
    loop.run_epochs(data, 10**6)


class Life:
    """One training, from its start to its ``kill -9``."""

    def __init__(self, folder: Path) -> None:
        self.saved = CONTEXT.Value("q", -1)
        self._process = CONTEXT.Process(target=train, args=(folder, self.saved))
        self._process.start()

    def wait_for(self, step: int) -> None:
        """Until the checkpoint of a step is known to be written."""
        while self.saved.value < step:
            assert self._process.is_alive()

    def kill(self) -> int:
        """Kill it; returns the newest step that it knew to be saved."""
        self._process.kill()
        self._process.join(60)
        return int(self.saved.value)
