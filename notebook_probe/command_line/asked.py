"""Arguments of a command: which catalogue, and which of its runs."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from notebook_probe.catalogues import Catalogue, catalogue
from notebook_probe.errors import (
    MissingExtraError,
    QueryError,
    RecordFormatError,
    UnknownNameError,
    near,
)
from notebook_probe.record.store.nothing import nothing_at
from notebook_probe.record.store.other_tools import is_run_of_other_tool

__all__ = ["RUN", "add_catalogue", "check_target", "count", "location_of", "opened"]

RUN = "location, name, or first characters of an id"


def check_target(asked: Namespace) -> None:
    """Refuse a file of ``--to`` that exists, without ``--overwrite``."""
    if Path(asked.to).expanduser().is_file() and not asked.overwrite:
        raise QueryError(f"{asked.to} exists already; --overwrite replaces it")


def add_catalogue(parser: ArgumentParser) -> None:
    """Add the options that choose the catalogue."""
    parser.add_argument(
        "--catalogue",
        metavar="PLACE",
        help="database of the catalogue: a file, or postgresql://host/lab; by default the user's",
    )
    parser.add_argument(
        "--root", action="append", metavar="PLACE", help="also search this folder or URL"
    )


def count(text: str) -> int:
    """Parse a number that is not negative."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r}; a whole number from 0 is expected")
    return int(text)


@contextmanager
def opened(asked: Namespace, folders: Sequence[str] = ()) -> Iterator[Catalogue]:
    """Open the chosen catalogue, which also looks below folders, and close it afterwards."""
    with catalogue(asked.catalogue, [*(asked.root or ()), *folders]) as found:
        yield found


def location_of(word: str, asked: Namespace) -> str:
    """Return the location of a run, given itself, its name, or the start of its id.

    Raises
    ------
    UnknownNameError
        There is none, there are several, or the word is empty.
    RecordFormatError
        Nothing is at a path.
    """
    if not word.strip():
        raise UnknownNameError(f"{word!r} names no run; allowed: its {RUN}")
    path = Path(word).expanduser()
    if "://" in word or path.exists() or is_run_of_other_tool(path):  # no catalogue is needed
        return word
    try:
        with opened(asked) as cat:
            return str(cat.place_of(word))
    except UnknownNameError:
        if len(path.parts) > 1 or path.suffix:  # a path, and no name of a run
            raise RecordFormatError(nothing_at(word, path)) from None
        raise
    except MissingExtraError as error:
        raise UnknownNameError(f"nothing is at {word}{_close_to(Path(word))}; {error}") from error


def _close_to(path: Path) -> str:
    """Return names in the same folder that are close to a path, for a message."""
    try:
        names = sorted(one.name for one in path.expanduser().parent.iterdir())
    except OSError:
        return ""
    return f", {near(path.name, names)}"
