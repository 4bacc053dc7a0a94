"""Trainings in processes of their own, which kill themselves at a chosen moment or are killed."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

import notebook_probe as nbp
from notebook_probe.home import HOME
from tests.experiment.digits import BATCH, digits, params
from tests.experiment.saving.lives import life

__all__ = ["Moment", "Process", "train", "train_digits"]

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


class Moment(NamedTuple):
    """As a function is about to be called for the n-th time, counted from 1."""

    module: str
    function: str
    n: int


def owner_of(moment: Moment) -> tuple[Any, str]:
    """Return the module or class that has the function, and its name there."""
    owner: Any = importlib.import_module(moment.module)
    *path, name = moment.function.split(".")
    for part in path:
        owner = getattr(owner, part)
    return owner, name


def at(moment: Moment) -> None:
    """Have this process end there, as by ``kill -9``."""
    owner, name = owner_of(moment)
    call, calls = getattr(owner, name), iter(range(1, 10**9))

    def instead(*args: Any, **options: Any) -> Any:
        if next(calls) == moment.n:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)

    setattr(owner, name, instead)


class Counted(dict[str, Any]):
    """No results; tells how many units were done since this process began."""

    def __init__(self, done: Any) -> None:
        self.done = done

    def items(self) -> Any:
        self.done.value += 1
        return super().items()


def train(done: Any, folder: Path, until: int, save: dict[str, Any]) -> None:
    life(folder, until, watched=True, results=Counted(done), **save)


def train_digits(done: Any, home: Path, n_units: int, save: dict[str, Any]) -> None:
    """The same from dicts of parameters alone."""
    os.environ[HOME] = str(home)
    sizes = {"num_steps": n_units, "data_params": {"func": digits, "batch_size": BATCH}}
    nbp.train_from_params(**params(save_params={"do_save": True, **save}, train_params=sizes))


def live(target: Callable[..., None], moment: Moment | None, done: Any, args: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    if moment is not None:
        at(moment)
    target(done, *args)


class Process:
    """One life of a training: ``target(done, *args)``, killed at a moment or by others."""

    def __init__(
        self, target: Callable[..., None], *args: Any, moment: Moment | None = None
    ) -> None:
        self.done = CONTEXT.Value("q", 0)
        self._process = CONTEXT.Process(target=live, args=(target, moment, self.done, args))
        self._process.start()

    def wait_for(self, n_units: int) -> None:
        while self.done.value < n_units and self._process.is_alive():
            self._process.join(0.001)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int | None:
        """Its exit code, once it has ended."""
        self._process.join(60)
        return self._process.exitcode
