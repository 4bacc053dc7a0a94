"""Two processes that train together over gloo on the loopback, and what they say of it.

They are started once and serve many tests: importing torch is what takes long. Every task forms a
process group of its own, which meets in a file.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.forks import process_context

__all__ = ["PATIENCE_S", "Pair"]

PATIENCE_S = 120.0
"""So long both may take for a task; a collective that one of them misses ends it earlier."""

COLLECTIVE_S = 60.0


class Pair:
    """Runs functions on two ranks: ``pair.run(function, *arguments)`` gives what each returned.

    The functions stand at the top of a module; they get their rank first.
    """

    def __init__(self) -> None:
        self._ranks: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        if not self._ranks:
            self._start()
        with tempfile.TemporaryDirectory() as folder:
            for _, ours in self._ranks:
                ours.send((function, arguments, folder))
            until = time.monotonic() + PATIENCE_S
            answers = [self._answer(ours, until) for _, ours in self._ranks]
        failures = [text for text, _ in answers if text]
        if failures:
            self.end()
            raise AssertionError("\n".join(failures))
        return [result for _, result in answers]

    def end(self) -> None:
        """Let both go; whoever does not is ended."""
        for _, ours in self._ranks:
            with suppress(OSError):
                ours.send(None)
        for process, ours in self._ranks:
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()
            ours.close()
        self._ranks = []

    def _start(self) -> None:
        context = process_context()
        for rank in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, theirs), daemon=True)
            process.start()
            theirs.close()
            self._ranks.append((process, ours))

    def _answer(self, ours: Connection, until: float) -> tuple[str, Any]:
        if not ours.poll(max(0.0, until - time.monotonic())):
            return "no answer in time: a collective that the other rank never joined?", None
        try:
            return ours.recv()
        except EOFError:
            return "the process is gone", None


def _serve(rank: int, pipe: Connection) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    while (task := pipe.recv()) is not None:
        function, arguments, folder = task
        try:
            pipe.send(("", _together(rank, Path(folder), function, arguments)))
        except BaseException:
            pipe.send((f"rank {rank}:\n{traceback.format_exc()}", None))


def _together(rank: int, folder: Path, function: Callable[..., Any], arguments: Any) -> Any:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=COLLECTIVE_S),
    )
    try:
        dist.barrier()  # a rank that is gone before the other has connected to it fails the other
        return function(rank, *arguments)
    finally:
        dist.destroy_process_group()
