"""Run tests against a changed copy of the project; the working tree stays untouched."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["Copy", "copied"]

PRELOADED = ("hypothesis", "numpy", "pytest", "torch", "xarray", "zarr")
"""Libraries that are imported once; each trial is a fork that has them."""


OPTIONS = [
    *("-x", "-q", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # what is preloaded is not rewritten
]


class Copy:
    """A copy of the project, in which one file at a time is changed and tests run.

    Parameters
    ----------
    folder : Path
        Root of the copy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def change(self, file: str, text: str) -> None:
        """Write a file; a process that starts later compiles it again."""
        path = self.folder / file
        path.write_text(text, "utf-8")
        Path(cache_from_source(path)).unlink(missing_ok=True)

    def passes(self, tests: Sequence[str], limit_s: float, log: Path) -> bool:
        """Run tests until the first that fails; too late is a failure, too."""
        child = os.fork()
        if child == 0:
            self._run(tests, log)
        return _status(child, limit_s) == 0

    def _run(self, tests: Sequence[str], log: Path) -> None:
        """Run pytest in this process, a fork, and end it."""
        status = 1
        try:
            os.setsid()
            with log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.chdir(self.folder)
            sys.path.insert(0, str(self.folder))
            os.environ["PYTHONPATH"] = str(self.folder)  # of processes that tests start
            import pytest

            status = int(pytest.main([*OPTIONS, *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)


def _status(child: int, limit_s: float) -> int:
    """Wait for a fork and end its whole group; -1 if it took too long."""
    end = time.monotonic() + limit_s
    status: int | None = None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
        return -1
    return status


@contextmanager
def copied(root: Path) -> Iterator[Copy]:
    """Copy what git knows and does not ignore to a folder that is removed afterwards."""
    for name in PRELOADED:
        __import__(name)
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    with TemporaryDirectory(prefix="mutants-") as folder:
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, Path(folder) / name)
        yield Copy(Path(folder))
