"""Try every entry point with one hostile record in a separate process, with limits.

A parent that has imported everything forks once for each record; so a record that takes the
memory or never returns ends one child. Run one trial by
``python -m tests.hostile.trial NAME... -- ENTRY_POINT...``. Tests share one parent, `Trials`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from notebook_probe.errors import ProbeError
from notebook_probe.home import HOME
from tests.hostile.corpus import CORPUS
from tests.hostile.doors import DOORS

__all__ = ["MOST_BYTES", "MOST_S", "Fault", "Trials", "faults_of"]

MOST_S = 10.0
MOST_BYTES = 2**30
REPORT_S = 2.0
"""So much later than a door's limit its child is killed: it hangs where no signal reaches it."""
SERVE, ANSWER = "--serve", "faults: "


class Fault(NamedTuple):
    """What a door did that it may not."""

    record: str
    door: str
    what: str


class _TooLong(BaseException):
    pass


def faults_of(whole: Path, name: str, doors: Iterable[str] = DOORS) -> list[Fault]:
    """Spoil a copy of the whole record, and knock at doors."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        shutil.copytree(whole, out / "good.zarr")
        place = Path(shutil.copytree(whole, out / "bad.zarr"))
        CORPUS[name](place)
        left, found = list(doors), []
        while left:
            done, faults = _in_child(place, out, name, left)
            found += faults
            left = left[done:]
        return found


def _in_child(place: Path, out: Path, name: str, doors: list[str]) -> tuple[int, list[Fault]]:
    """Try doors in order until one ends the process; how many were tried, and their faults."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _limit()
        for door in doors:
            os.write(writing, (json.dumps(_tried(place, out, door)) + "\n").encode())
        os._exit(0)
    os.close(writing)
    return _listened(pid, reading, name, doors)


def _listened(pid: int, reading: int, name: str, doors: list[str]) -> tuple[int, list[Fault]]:
    told: list[str] = []
    rest = b""
    os.set_blocking(reading, False)
    since = _clock(pid)
    while _clock(pid) - since < MOST_S + REPORT_S:
        try:
            got = os.read(reading, 65536)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        if not got:
            break
        *lines, rest = (rest + got).split(b"\n")
        told += [json.loads(line) for line in lines]
        since = _clock(pid) if lines else since
    hangs = _clock(pid) - since >= MOST_S + REPORT_S
    os.close(reading)
    if hangs:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    faults = [Fault(name, door, what) for door, what in zip(doors, told, strict=False) if what]
    n = len(told)
    if n < len(doors):
        what = "hangs" if hangs else f"ended the process: {status}"
        faults.append(Fault(name, doors[n], what))
        n += 1
    return n, faults


def _limit() -> None:
    warnings.simplefilter("ignore")
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, now + MOST_BYTES))


def _clock(pid: int | str = "self") -> float:
    """Seconds on a clock that stands still while the process waits for a core.

    However busy the machine is, a door has the same time.
    """
    waited_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    return time.monotonic() - waited_ns / 1e9


def _tried(place: Path, out: Path, door: str) -> str:
    """What went wrong, in words; empty when the door opened or said clearly why not."""
    room = Path(tempfile.mkdtemp(dir=out.parent, prefix="out-"))
    shutil.copytree(out / "good.zarr", room / "good.zarr")
    shutil.copytree(place, room / "bad.zarr", symlinks=True)
    began = _clock()

    def is_late(*_: object) -> None:
        left = MOST_S - (_clock() - began)
        if left <= 0:
            raise _TooLong
        signal.setitimer(signal.ITIMER_REAL, left)

    signal.signal(signal.SIGALRM, is_late)
    signal.setitimer(signal.ITIMER_REAL, MOST_S)
    try:
        DOORS[door](place, room)
    except ProbeError as error:
        if len(str(error)) > 5_000:
            return f"an error of {len(str(error))} characters"
    except _TooLong:
        return "took too long: " + _where()
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]} at {_where(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        shutil.rmtree(room, ignore_errors=True)
    took = _clock() - began
    return f"took {took:.0f} s" if took > MOST_S else ""


def _where(error: BaseException | None = None) -> str:
    error = sys.exception() if error is None else error
    frames = traceback.extract_tb(None if error is None else error.__traceback__)
    ours = [f for f in frames if "notebook_probe/" in f.filename] or list(frames)
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(ours[-4:]))


def _needed(whole: Path, doors: Iterable[str]) -> list[str]:
    """Write the whole record, use every door once, and return the modules that were imported.

    In a child, with which the threads of torch end.
    """
    from tests.hostile.base import record

    listing = whole.parent / "modules.txt"
    pid = os.fork()
    if pid == 0:
        record(whole)
        shutil.copytree(whole, whole.parent / "good.zarr")
        _limit()
        for door in doors:
            _tried(whole, whole.parent, door)
        listing.write_text("\n".join(sys.modules))
        os._exit(0)
    os.waitpid(pid, 0)
    return listing.read_text().splitlines()


def _import(modules: Iterable[str]) -> None:
    """Import what every child would import otherwise."""
    for name in modules:
        with suppress(ImportError):  # a package may add names that are no modules
            importlib.import_module(name)


def _serve(folder: Path) -> None:
    """Read names and doors from stdin, a line each time, and print their faults as a line."""
    known, whole = set[str](), Path()
    for number, line in enumerate(sys.stdin):
        names, doors = json.loads(line)
        if new := [door for door in doors if door not in known]:
            whole = folder / str(number) / "whole.zarr"
            whole.parent.mkdir()
            _import(_needed(whole, new))
            known |= {*new}
            gc.collect()
            gc.freeze()  # else each child looks through all of it, and copies its pages
        faults = [fault for name in names for fault in faults_of(whole, name, doors)]
        print(f"\n{ANSWER}{json.dumps(faults)}", flush=True)  # a door may leave half a line


class Trials:
    """Trials in children of one process, which has a separate home.

    A process without threads of torch is needed, for the children are its forks.
    """

    def __init__(self, folder: Path) -> None:
        self._said = folder / "stderr"
        env = {**os.environ, HOME: str(folder / "home"), "MALLOC_ARENA_MAX": "1"}
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.hostile.trial", SERVE, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env={**env, "OMP_NUM_THREADS": "1"},
            )

    def faults(self, names: Sequence[str], doors: Sequence[str]) -> list[Fault]:
        """Try records at doors; return what went wrong."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps([names, doors]) + "\n")
        asked.flush()
        for line in answers:  # doors print, too
            if line.startswith(ANSWER):
                return [Fault(*one) for one in json.loads(line.removeprefix(ANSWER))]
        raise AssertionError(self._said.read_text()[-2000:])

    def end(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()


def main(words: list[str]) -> None:
    """Print the faults of records at doors, a line each; all of them where none is named."""
    if words[:1] == [SERVE]:
        _serve(Path(words[1]))
        return
    split = words.index("--") if "--" in words else len(words)
    names, doors = words[:split] or [*CORPUS], words[split + 1 :] or [*DOORS]
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.zarr"
        _import(_needed(whole, doors))
        for name in names:
            for fault in faults_of(whole, name, doors):
                print(f"{fault.record} | {fault.door} | {fault.what}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
