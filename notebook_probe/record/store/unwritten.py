"""Where rows lie that their record could not take: in a record by themselves, found by its run.

It is called after the run, not after the record's folder, which may have been renamed.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path

__all__ = ["free_places", "unwritten"]

RUN_ID = re.compile(r"[0-9a-f]{32}")


def free_places(folder: Path, run_id: str) -> Iterator[Path]:
    """Folders for what the record in ``folder`` could not take, none of them there yet."""
    for above in _above(folder):
        yield next(place for place in _numbered(above, run_id) if not os.path.lexists(place))


def unwritten(folder: Path, run_id: object) -> list[Path]:
    """The folders with what the record in ``folder`` could not take, the oldest first."""
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        return []
    places = (takewhile(_is_own, _numbered(above, run_id)) for above in _above(folder))
    found = {place.resolve(): place for some in places for place in some}
    return sorted(found.values(), key=lambda place: place.stat().st_mtime_ns)


def _above(folder: Path) -> list[Path]:
    """Beside the record; where that is full or gone, in the user's cache; else where all may."""
    above = [folder.parent]
    with suppress(RuntimeError):  # an account without a home
        above.append(Path.home() / ".cache" / "notebook_probe")
    with suppress(FileNotFoundError):  # a machine on which nothing can be written
        above.append(Path(tempfile.gettempdir()))
    return above


def _numbered(above: Path, run_id: str) -> Iterator[Path]:
    yield above / f"unwritten-{run_id}"
    yield from (above / f"unwritten-{run_id}-{number}" for number in count(2))


def _is_own(place: Path) -> bool:
    """Whether it is there, and nobody else has put it there for us to find."""
    try:
        found = place.lstat()
    except OSError:
        return False
    is_users = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return stat.S_ISDIR(found.st_mode) and is_users
