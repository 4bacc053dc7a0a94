"""One writer per record where the file system has no locks: a file that is renewed in time.

It is created only if there is none, which every file system does atomically. Its end is given by
the holder's clock, so the clocks of machines that write there should agree within some seconds. An
expired one is moved away by the next writer; a holder that was suspended for so long notices before
its next commit, and writes no more.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from notebook_probe.errors import RecordLockedError
from notebook_probe.record.store.files import open_here

__all__ = ["LEASE_NAME", "LEASE_S", "LeaseFile", "live_lease"]

LEASE_NAME = ".lease"
LEASE_S = 90.0
"""A dead writer's record can be taken over after so long."""
RENEW_S = 30.0
MOST_BYTES = 4096


class LeaseFile:
    """The right to write into ``folder``, renewed by `keep`, until `release`.

    Parameters
    ----------
    owner : mapping
        Process, host and start, for messages.

    Raises
    ------
    RecordLockedError
        Another writer has it; the message says which.
    """

    def __init__(self, folder: Path, owner: dict[str, Any]) -> None:
        self.path = folder / LEASE_NAME
        self._owner = {**owner, "token": uuid.uuid4().hex}
        # Named by the token, so that two writers never write the same temporary file.
        self._aside = self.path.with_name(f"{LEASE_NAME}.{self._owner['token']}")
        self._pid = os.getpid()
        before = _content(self.path)
        if before is not None:
            self._take_over(before)
        try:
            # O_EXCL decides between two writers that both saw no lease.
            self._write(is_new=True)
        except FileExistsError:  # another was faster
            raise RecordLockedError(self._refusal(_content(self.path))) from None

    def keep(self) -> None:
        """Renew it when a third of its time is over.

        Raises
        ------
        RecordLockedError
            Another writer has taken it over.
        """
        # Read each time: a paused machine may wake up after its lease was taken over.
        found = _content(self.path)
        if found is None or _parsed(found).get("token") != self._owner["token"]:
            raise RecordLockedError(self._refusal(found))
        if time.monotonic() - self._renewed > RENEW_S:
            self._write(is_new=False)

    def release(self) -> None:
        """Give it back, if it is still ours; a forked child leaves it to its parent."""
        found = _content(self.path)
        if (
            found is not None
            and os.getpid() == self._pid
            and _parsed(found).get("token") == self._owner["token"]
        ):
            self.path.unlink(missing_ok=True)

    def _take_over(self, before: bytes) -> None:
        if _ends(before, self.path) > time.time():
            raise RecordLockedError(self._refusal(before))
        with suppress(FileNotFoundError):  # given back in between
            # Moved, not removed: afterwards it shows whether it is the expired one.
            self.path.replace(self._aside)
            moved = _content(self._aside)
            if moved != before:  # another process had just taken it over
                self._aside.replace(self.path)
                raise RecordLockedError(self._refusal(moved))
            self._aside.unlink()

    def _write(self, *, is_new: bool) -> None:
        self._renewed = time.monotonic()
        content = json.dumps({**self._owner, "ends": time.time() + LEASE_S}).encode()
        target = self.path if is_new else self._aside
        fd = open_here(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(fd, content)
        finally:
            os.close(fd)
        if not is_new:
            target.replace(self.path)

    def _refusal(self, content: bytes | None) -> str:
        holder = _holder(content or b"", self.path)
        return f"{self.path.parent} has another writer: {holder}"


def live_lease(folder: Path) -> str:
    """Return the holder of the lease of ``folder``, as text; empty if there is none."""
    path = folder / LEASE_NAME
    content = _content(path)
    if content is None or _ends(content, path) <= time.time():
        return ""
    return _holder(content, path)


def _content(path: Path) -> bytes | None:
    try:
        fd = open_here(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    try:
        return os.read(fd, MOST_BYTES)
    finally:
        os.close(fd)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(content)
    except ValueError:
        owner = None
    return owner if isinstance(owner, dict) else {}


def _ends(content: bytes, path: Path) -> float:
    ends = _parsed(content).get("ends")
    if isinstance(ends, int | float):
        return ends
    try:  # it is just being written, or its writer died while writing it
        return path.lstat().st_mtime + LEASE_S
    except FileNotFoundError:
        return 0.0


def _holder(content: bytes, path: Path) -> str:
    owner, left_s = _parsed(content), max(0.0, _ends(content, path) - time.time())
    return (
        f"process {owner.get('pid', '?')} on {owner.get('host', '?')}, since "
        f"{owner.get('started', 'unknown')}; if it has died, its lease ends in {left_s:.0f} s"
    )
