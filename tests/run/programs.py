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
from pathlib import Path
from typing import NamedTuple

__all__ = ["Ended", "Programs"]

PATIENCE_S = 120.0

PARENT = """
import gc, json, os, sys
import torch, torch._dynamo
import notebook_probe as nbp
nbp.watch, nbp.open_run  # imported by their first use
gc.collect()
gc.freeze()  # else each fork looks through all of it, and copies its pages, as it ends
for line in sys.stdin:
    text, sys.argv[1:], told, folder = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for stream, path in ((0, os.devnull), (1, os.devnull), (2, told)):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), stream)
os.chdir(folder)
exec(compile(text, "<program>", "exec"))
"""


class Ended(NamedTuple):
    """How a program ended, and what it said on stderr.

    Without the folder of the interpreter, whose name is nothing that a program says: a virtual
    environment may lie in a folder that is called like the package.
    """

    code: int
    stderr: str


class Programs:
    """Runs programs one after the other; warnings are errors in them."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "stderr"
        self._parent = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, text: str, *arguments: str, folder: Path | None = None) -> Ended:
        self._told.unlink(missing_ok=True)
        asked, answer = self._parent.stdin, self._parent.stdout
        assert asked is not None
        assert answer is not None
        beginning = [text, arguments, str(self._told), str(folder or Path.cwd())]
        asked.write(json.dumps(beginning) + "\n")
        asked.flush()
        assert select.select([answer], [], [], PATIENCE_S)[0], "the program does not end"
        code = int(answer.readline())
        return Ended(code, self._told.read_text().replace(sys.prefix, ""))

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
