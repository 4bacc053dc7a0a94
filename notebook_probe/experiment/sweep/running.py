"""Processes on this machine, each with one configuration; nothing else is ever ended."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TypeAlias

from notebook_probe.experiment.sweep.child import Function, train_alone, trained
from notebook_probe.experiment.sweep.configuration import Configuration
from notebook_probe.experiment.sweep.outcome import FAILED, Outcome, read_outcome, write_outcome

__all__ = ["Ended", "check_can_be_sent", "run_all"]

Ended: TypeAlias = Callable[[Configuration, Outcome], None]

PATIENCE_S = 5.0
"""Seconds to wait for a process to end on request."""


def run_all(
    function: Function, configurations: Sequence[Configuration], processes: int, ended: Ended
) -> None:
    """Train all, several at a time; ``ended`` is called with each.

    Raises
    ------
    KeyboardInterrupt
        Once every process that was begun here has ended.
    """
    if processes == 0:
        for one in configurations:
            ended(one, trained(function, one))
        return
    waiting = list(reversed(configurations))
    running: dict[SpawnProcess, Configuration] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                one = waiting.pop()
                running[_begun(function, one)] = one
            # Sleeps until one has ended, without polling.
            wait([process.sentinel for process in running])
            for process in [one for one in running if one.exitcode is not None]:
                one = running.pop(process)
                ended(one, _outcome(process, one))
    finally:
        _end(running)


def check_can_be_sent(function: Function) -> None:
    """Check that another process finds the function.

    Raises
    ------
    ValueError
        Another process cannot find the function.
    """
    name = getattr(function, "__qualname__", repr(function))
    try:
        pickle.dumps(function)  # by where it is; it is never read from a file
        is_findable = not _is_of_a_notebook(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        is_findable = False
    if not is_findable:
        raise ValueError(
            f"another process does not find {name}: write it to a module, in a notebook by "
            f"%%writefile, and import it; or train here, one after the other: processes=0"
        )


def _is_of_a_notebook(function: Function) -> bool:
    import __main__

    is_of_main = getattr(function, "__module__", "") == "__main__"
    return is_of_main and not getattr(__main__, "__file__", None)


def _begun(function: Function, configuration: Configuration) -> SpawnProcess:
    # Not by fork: CUDA cannot be used in a forked child, nor locks that other threads held.
    process = get_context("spawn").Process(
        target=train_alone, args=(function, configuration), name=f"sweep {configuration.id}"
    )
    process.start()
    return process


def _outcome(process: SpawnProcess, configuration: Configuration) -> Outcome:
    """Read the outcome of a process; a killed one has written none."""
    # A sentinel is ready a moment before the exit code is.
    process.join()
    folder = Path(configuration.folder)
    found = read_outcome(folder)
    if found is None:
        found = Outcome(FAILED, error=f"the process ended with exit code {process.exitcode}")
        write_outcome(folder, found)
    return found


def _end(running: dict[SpawnProcess, Configuration]) -> None:
    # All are asked first, so that they end together within one patience, not one after the other.
    for process in running:
        process.terminate()
    for process in running:
        process.join(PATIENCE_S)
        if process.exitcode is None:
            process.kill()
            process.join()
