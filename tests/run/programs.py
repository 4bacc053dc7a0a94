"""Programs of users, each in an interpreter that ends by itself.

Importing torch takes seconds. One process does it, and every program runs in a fork of that one:
as its main program, with an exit of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["Begun", "Ended", "Programs"]

PATIENCE_S = 120.0

PARENT = """
import gc, json, os, sys
import torch, torch._dynamo
import notebook_probe as nbp
nbp.watch, nbp.open_run  # imported by their first use
gc.collect()
gc.freeze()  # else each fork looks through all of it, and copies its pages, as it ends
for line in sys.stdin:
    child, is_waited_for, *begun = json.loads(line)
    if not child and not (child := os.fork()):
        break
    if is_waited_for:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    else:
        print(child, flush=True)
else:
    sys.exit()
out, told, folder, environment, text, sys.argv[1:] = begun
for stream, path in ((0, os.devnull), (1, out), (2, told)):
    os.dup2(os.open(path, (os.O_WRONLY if stream else os.O_RDONLY) | os.O_CREAT), stream)
os.chdir(folder)
os.environ.update(environment)
exec(compile(text, "<program>", "exec"))
"""


class Ended(NamedTuple):
    """How a program ended, and what it said on stderr.

    Without the folder of the interpreter, whose name is nothing that a program says: a virtual
    environment may lie in a folder that is called like the package.
    """

    code: int
    stderr: str


class Begun:
    """A program that runs while a test continues.

    Attributes
    ----------
    stdout : file
        Ends with the program.
    """

    def __init__(self, programs: Programs, number: int, out: Path) -> None:
        self._programs, self._number = programs, number
        self._code: int | None = None
        self.stdout = out.open()  # waits for the program

    def kill(self) -> None:
        """Kill it, unless it has been waited for; afterwards no such process is known."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._number, signal.SIGKILL)
            self.wait()

    def wait(self) -> int:
        """Wait until it ends; return its exit code."""
        if self._code is None:
            self._code = self._programs.answer(self._number, True)
        return self._code


class Programs:
    """Runs programs one after the other, or next to a test; warnings are errors in them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._told, self._n_begun = folder, folder / "stderr", 0
        self._parent = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self,
        text: str,
        *arguments: str,
        folder: Path | None = None,
        out: Path | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Ended:
        """Run a program to its end; what it prints goes to ``out``."""
        self._told.unlink(missing_ok=True)
        where = [str(out or os.devnull), str(self._told), str(folder or Path.cwd())]
        code = self.answer(0, True, *where, dict(environment), text, arguments)
        return Ended(code, self._told.read_text().replace(sys.prefix, ""))

    def begin(self, text: str, *arguments: str, environment: Mapping[str, str]) -> Begun:
        """Start a program with these environment variables, and do not wait for it."""
        self._n_begun += 1
        out = self._folder / f"stdout {self._n_begun}"
        os.mkfifo(out)
        told = out.with_name(f"stderr {self._n_begun}")
        where = [str(out), str(told), str(Path.cwd())]
        number = self.answer(0, False, *where, dict(environment), text, arguments)
        return Begun(self, number, out)

    def answer(self, *asked: Any) -> int:
        """Return the exit code of a program, or the number of one that has begun."""
        asking, answers = self._parent.stdin, self._parent.stdout
        assert asking is not None
        assert answers is not None
        asking.write(json.dumps(asked) + "\n")
        asking.flush()
        assert select.select([answers], [], [], PATIENCE_S)[0], "the program does not end"
        return int(answers.readline())

    def end(self) -> None:
        """Let the process go, and with it a program that hangs."""
        if self._parent.stdin is not None:
            self._parent.stdin.close()
        try:
            self._parent.wait(5.0)
        except subprocess.TimeoutExpired:
            os.killpg(self._parent.pid, signal.SIGKILL)
            self._parent.wait()
        if self._parent.stdout is not None:
            self._parent.stdout.close()
