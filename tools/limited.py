"""Running a command that may take no longer than its limit, with its output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["run_limited"]


def run_limited(
    command: Sequence[str],
    output: Path,
    limit_s: float,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, float]:
    """Run a command in ``folder``; end it and its children at the limit.

    Returns
    -------
    str
        ``"green"``, ``"failed"`` or ``"too long"``.
    float
        Seconds it took.
    """
    started = time.monotonic()
    with output.open("w") as file:
        process = subprocess.Popen(
            [*command],
            cwd=folder,
            env=None if environment is None else {**environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # the group that a limit ends
        )
        try:
            result = "green" if process.wait(limit_s) == 0 else "failed"
        except subprocess.TimeoutExpired:
            result = "too long"
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        except BaseException:  # an interrupt leaves nothing running
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return result, time.monotonic() - started
