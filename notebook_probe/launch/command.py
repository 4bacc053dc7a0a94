"""Command and environment that run a program with watching."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from notebook_probe.launch.options import LAUNCH

__all__ = ["replace_process", "watched_environment"]

STARTUP = Path(__file__).with_name("startup")
SEARCHED = "PYTHONPATH"


def watched_environment(
    options: Mapping[str, str], notes: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return an environment in which Python watches what a program trains.

    Parameters
    ----------
    options : mapping of str to str
        Variables of `LaunchOptions`.
    notes : str
        File in which processes note their records.
    environment : mapping of str to str
        Environment of this process, which has the same number as the program.

    Examples
    --------
    >>> found = watched_environment({}, "notes", {"PYTHONPATH": "src"})
    >>> Path(found["PYTHONPATH"].split(os.pathsep)[0]).name
    'startup'
    """
    path = filter(None, (str(STARTUP), environment.get(SEARCHED)))
    launch = {SEARCHED: os.pathsep.join(path), LAUNCH: f"{os.getpid()}:{notes}"}
    return {**environment, **options, **launch}


def replace_process(words: Sequence[str], options: Mapping[str, str]) -> None:
    """Replace this process by Python with ``words``, so that signals and exit code are its own."""
    file, notes = tempfile.mkstemp(prefix="notebook-probe-run-")
    os.close(file)
    environment = watched_environment(options, notes, os.environ)
    try:
        os.execve(sys.executable, [sys.executable, *words], environment)
    finally:  # reached only if it cannot be replaced
        Path(notes).unlink()
