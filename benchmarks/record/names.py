"""Scalars that a loop logs under many names, beside TensorBoard and W&B offline.

Each tool logs the same numbers step by step. What a call takes is processor time of the thread
that makes it, what a value takes that of the whole process, writing and closing included; W&B's
service is a process of its own, whose time is added when it has ended.
"""

from __future__ import annotations

import argparse
import io
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn

import notebook_probe as nbp
from benchmarks.peers.tool import installed
from benchmarks.table import Table

__all__ = ["run"]

N_NAMES = (5, 100, 1_000)
N_STEPS = 400
STEPS_PER_FLUSH = 100
COLUMNS = {
    "names": 5,
    "tool": 11,
    "us per call": 11,
    "values per CPU s": 16,
    "flush ms": 8,
    "files": 5,
    "root kB": 7,
    "bytes/value": 11,
}


@dataclass(frozen=True)
class Logging:
    """A tool that logs numbers by name."""

    log: Callable[[Mapping[str, float]], object]
    close: Callable[[], object]
    end_step: Callable[[], object] = lambda: None
    flush: Callable[[], object] | None = None


def run(chosen: argparse.Namespace) -> None:
    """Print a line per tool and number of names."""
    print(f"{N_STEPS} steps; targets of ours at 1,000 names: <= 100 us per call, a flush <= 50 ms,")
    print("<= 2,000 files, <= 0.5 kB of the root per name\n")
    table = Table(COLUMNS)
    for n_names in N_NAMES:
        for tool, begin in TOOLS.items():
            if tool == "ours" or find_spec(tool):
                with tempfile.TemporaryDirectory() as folder:
                    table.row(f"{n_names}", tool, *_figures(begin, Path(folder), n_names))
            else:
                table.row(f"{n_names}", tool, "absent")


def _figures(begin: Callable[[Path], Logging], folder: Path, n_names: int) -> list[str]:
    noise = np.random.default_rng(0)
    names = [f"group_{number // 10}/{number % 10}" for number in range(n_names)]
    table = noise.normal(size=(N_STEPS, n_names)).tolist()
    rows = [dict(zip(names, row, strict=True)) for row in table]
    tool, calls, flushes = begin(folder), [], []
    begun = _cpu_s()
    for step, values in enumerate(rows):
        calls.append(_taken_s(partial(tool.log, values), time.thread_time))
        tool.end_step()
        if tool.flush is not None and step % STEPS_PER_FLUSH == STEPS_PER_FLUSH - 1:
            flushes.append(_taken_s(tool.flush, time.process_time))
    tool.close()
    n_values, files = N_STEPS * n_names, [one for one in folder.rglob("*") if one.is_file()]
    root = folder / "run.zarr" / "zarr.json"
    return [
        f"{1e6 * np.median(calls):.0f}",
        f"{n_values / (_cpu_s() - begun):.1e}",
        f"{1e3 * np.median(flushes):.0f}" if flushes else "",
        f"{len(files)}",
        f"{root.stat().st_size / 1e3:.0f}" if root.exists() else "",
        f"{sum(one.stat().st_size for one in files) / n_values:.1f}",
    ]


def _taken_s(call: Callable[[], object], clock: Callable[[], float]) -> float:
    begun = clock()
    call()
    return clock() - begun


def _cpu_s() -> float:
    """Processor time of this process, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _ours(folder: Path) -> Logging:
    model = nn.Linear(1, 1)
    with redirect_stdout(io.StringIO()):  # where it is recorded would tear the table
        watched = nbp.watch(model, store=folder / "run.zarr", probes=None)

    def end_step() -> None:
        model(torch.ones(1))  # which opens the step
        watched.step()

    return Logging(watched.log, watched.close, end_step, watched.flush)


def _tensorboard(folder: Path) -> Logging:
    from torch.utils.tensorboard import SummaryWriter

    writer, steps = SummaryWriter(str(folder)), iter(range(N_STEPS))

    def log(values: Mapping[str, float]) -> None:
        step = next(steps)
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Logging(log, writer.close)


def _wandb(folder: Path) -> Logging:
    wandb = installed("wandb")
    settings = wandb.Settings(silent=True, console="off")
    logged = wandb.init(mode="offline", dir=str(folder), project="names", settings=settings)

    def close() -> None:
        logged.finish()
        wandb.teardown()

    return Logging(logged.log, close)


TOOLS: dict[str, Callable[[Path], Logging]] = {
    "ours": _ours,
    "tensorboard": _tensorboard,
    "wandb": _wandb,
}
