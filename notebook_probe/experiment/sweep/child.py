"""One configuration trained, here or in a separate process; its folder has the outcome."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from notebook_probe.errors import first_line
from notebook_probe.experiment.sweep.configuration import Configuration
from notebook_probe.experiment.sweep.outcome import (
    FAILED,
    FINISHED,
    NONFINITE,
    OUTPUT,
    Outcome,
    plain,
    write_outcome,
)

__all__ = ["Function", "finished", "train_alone", "trained"]

Function: TypeAlias = Callable[[Configuration], Any]


def train_alone(function: Function, configuration: Configuration) -> None:
    """Run a whole process; its output goes into the folder."""
    folder = Path(configuration.folder)
    # Line by line, so that the file can be followed while it trains.
    with (folder / OUTPUT).open("w", encoding="utf-8", buffering=1) as output:
        # The file descriptors, not only sys.stdout: C libraries and child processes write there.
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        sys.stdout = sys.stderr = output
        trained(function, configuration)


def trained(function: Function, configuration: Configuration) -> Outcome:
    """Train and write what became of it.

    An interruption is none: the configuration is still to be trained.
    """
    begun_s = time.monotonic()
    try:
        outcome = finished(function(configuration))
    # Not BaseException: a training that was interrupted has no outcome and is trained again.
    except Exception as error:
        traceback.print_exc()
        outcome = Outcome(FAILED, error=first_line(error), traceback=traceback.format_exc())
    told = {**vars(outcome), "duration_s": time.monotonic() - begun_s}
    outcome = Outcome(**told)
    write_outcome(Path(configuration.folder), outcome)
    return outcome


def finished(returned: Any) -> Outcome:
    """Return the outcome of a function: numbers by name, or the location of its record."""
    if isinstance(returned, Mapping):
        return Outcome(FINISHED, plain(returned))
    if isinstance(returned, str | os.PathLike):
        return Outcome(FINISHED, record=os.fspath(returned))
    number = plain(returned)
    is_number = isinstance(number, int | float) or number in NONFINITE
    return Outcome(FINISHED, {"value": number} if is_number else {})
