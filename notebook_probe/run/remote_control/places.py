"""Addresses of a training: its session, its socket, and its record."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from notebook_probe.record.store.location import Location, RemoteStore, local_path
from notebook_probe.run.remote_control.coding import Coding, LetterError, parsed_json
from notebook_probe.run.remote_control.letters import KEY, VERSION

__all__ = [
    "ANNOUNCED",
    "Announcement",
    "new_socket_path",
    "place_of_record",
    "read_announcement",
    "remove_stale_sockets",
    "socket_paths",
]

ANNOUNCED = "run.json"
LONGEST_PATH = 100
"""Bytes of the path of a socket: Linux has room for 107, macOS for 103."""
LONGEST_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Announcement:
    """Note in the mailbox of a training that it can be controlled."""

    v: int
    session: str
    host: str
    pid: int


def read_announcement(content: bytes) -> Announcement:
    """Parse an announcement, which may be in a record from elsewhere.

    Raises
    ------
    LetterError
    """
    found = Coding({}).read(Announcement, parsed_json(content[:LONGEST_TEXT], "it"), ANNOUNCED)
    if found.v != VERSION or not KEY.fullmatch(found.session):
        raise LetterError(f"{ANNOUNCED} is of another version")
    return found


def place_of_record(location: Location) -> str:
    """Return what identifies a record on this machine, however its path is written.

    A copy is another folder: a request about the copy is not for the training.
    """
    path = local_path(location)
    if path is None:
        return str(location.store if isinstance(location, RemoteStore) else location).rstrip("/")
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}"


def socket_paths(session: str) -> Iterator[Path]:
    """Yield where the socket of a session may be."""
    for folder in _folders():
        if _is_ours_alone(folder):
            yield folder / f"{session[:16]}.sock"


def new_socket_path(session: str) -> Path | None:
    """Return a path for the socket of a session; None where there can be none."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{session[:16]}.sock"
        if _is_ours_alone(folder) and len(os.fsencode(path)) <= LONGEST_PATH:
            return path
    return None


def remove_stale_sockets(folder: Path) -> None:
    """Remove sockets of processes that have died."""
    for path in folder.glob("*.sock"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.setblocking(False)
            try:
                tried.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _folders() -> list[Path]:
    """Return folders for sockets, in the order in which both sides try them."""
    if not hasattr(os, "getuid"):
        return []
    name = f"notebook_probe-{os.getuid()}"
    # First a path that depends on no variable: a job's environment differs from that of a shell.
    roots = ["/tmp", os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()]
    return [Path(root) / name for root in dict.fromkeys(roots) if root]


def _is_ours_alone(folder: Path) -> bool:
    """Return whether only this user can open the folder; a link is not trusted."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )
