"""Locations of rows that their record could not take: separate records, found by the run.

They are named after the run, not after the record's folder, which may have been renamed.
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
    """Yield new folders for rows that the record in ``folder`` could not take."""
    for above in _above(folder):
        yield next(place for place in _numbered(above, run_id) if not os.path.lexists(place))


def unwritten(folder: Path, run_id: object) -> list[Path]:
    """Return the folders with rows that the record in ``folder`` could not take, oldest first."""
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        return []
    places = (takewhile(_is_own, _numbered(above, run_id)) for above in _above(folder))
    found = {place.resolve(): place for some in places for place in some}
    return sorted(found.values(), key=lambda place: place.stat().st_mtime_ns)


def _above(folder: Path) -> list[Path]:
    """Return the folders to try: next to the record, the user's cache, the temporary folder."""
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
    """Return whether it exists, and no other user has put it there for us to find."""
    try:
        # lstat: the temporary folder is everybody's, and the name could be a link to elsewhere.
        found = place.lstat()
    except OSError:
        return False
    is_users = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return stat.S_ISDIR(found.st_mode) and is_users
