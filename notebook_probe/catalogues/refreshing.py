"""Update of an index: changed records are read, missing ones removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.finding import RecordLocation
from notebook_probe.catalogues.finding.place import own_host
from notebook_probe.catalogues.index.index import Index, Known, Put
from notebook_probe.errors import RecordFormatError
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.writing import has_writer

__all__ = ["IndexChanges", "IndexRefresher"]

AT_ONCE = 8
"""Maximum number of stores that are queried in parallel."""
Key: TypeAlias = tuple[str, str]
"""Host and place."""

BATCH = 200
"""Rows per transaction: an interrupted build continues after the last of them."""


@dataclass(frozen=True)
class IndexChanges:
    """Changes since the last refresh.

    Attributes
    ----------
    added, changed, gone : int
        Runs.
    unreadable : mapping of str to str
        Places that could not be read, and why.
    """

    added: int = 0
    changed: int = 0
    gone: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Look:
    """Results of one refresh."""

    known: Mapping[tuple[str, str], Known]
    new: list[Put] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    silent: set[Key] = field(default_factory=set)
    """Places that gave no answer, of which nothing is known now."""
    n_added: int = 0
    n_changed: int = 0


class IndexRefresher:
    """Keep an index up to date with the records.

    Parameters
    ----------
    said_of : callable
        Marks of a run, as a part of its row.
    """

    def __init__(self, index: Index, said_of: Callable[[Location], Mapping[str, Any]]) -> None:
        self._index, self._said_of = index, said_of
        self._unreadable: dict[tuple[str, str], tuple[str, str]] = {}

    def refresh(self, places: Iterable[RecordLocation]) -> IndexChanges:
        """Refresh these places, and all known places of this machine.

        Raises
        ------
        sqlalchemy.exc.DBAPIError
            The database cannot be read or written; what was kept before stays.
        """
        look = _Look(self._index.known())
        self._look_at_all(_wanted(places, look.known), look, self._keep)
        self._keep(look)
        # Last: a record that was moved is known at its new place first.
        self._index.drop(look.gone)
        return IndexChanges(look.n_added, look.n_changed, len(look.gone), look.unreadable)

    def rebuild(self, places: Iterable[RecordLocation]) -> IndexChanges:
        """Read all of these again; until that is done everybody finds the rows of before.

        Rows of places that are not visible from here stay, and rows of a disk that does not
        respond.
        """
        known = self._index.known()
        wanted = _wanted(places, known)
        self._unreadable.clear()
        look = _Look({})
        self._look_at_all(wanted, look, lambda _: None)
        gone = [one.id for key, one in known.items() if key in wanted and key not in look.silent]
        self._index.replace(gone, look.new)
        return IndexChanges(look.n_added, unreadable=look.unreadable)

    def _look_at_all(
        self, wanted: Mapping[Key, RecordLocation], look: _Look, keep: Callable[[_Look], None]
    ) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # Stores are waited for in parallel; local files are read faster by one thread.
            elsewhere = (place for (host, _), place in wanted.items() if not host)
            for key, place in wanted.items():
                if key[0] and not _is_as_before(place, look.known.get(key)):
                    self._look_at(place, look)
                    if len(look.new) >= BATCH:
                        keep(look)
            for some in _batches(elsewhere):
                list(pool.map(lambda place: self._look_at(place, look), some))
                keep(look)

    def _keep(self, look: _Look) -> None:
        if look.new:
            known = self._index.known()  # another process may have been quicker
            self._index.put(one for one in look.new if not _is_known(one, known.get(one[:2])))
            look.new.clear()

    def _look_at(self, place: RecordLocation, look: _Look) -> None:
        """Read a record if it has changed, and note what to write of it into the index."""
        key = place.key
        known = look.known.get(key)
        # Before anything is read: a change during the read makes the mark too young to be trusted.
        seen_s = time.time()
        try:
            if _is_as_before(place, known):
                return
            mark = place.mark()
            if not mark:
                look.gone += [known.id] if known is not None else []
                return
            failed = self._unreadable.get(key)
            # Still unreadable: not parsed again at each refresh.
            if failed is not None and failed[0] == mark:
                look.unreadable[place.name] = failed[1]
                return
            document = read_document(place.location)
            row = {**document.row, **self._said_of(place.location)}
        except RecordFormatError as error:
            kept = mark if place.is_settled(mark, seen_s) else ""
            self._leave_out(place, look, kept, str(error))
            return
        except Exception as error:  # of the disk, or of a store's library
            look.unreadable[place.name] = f"{type(error).__name__}: {error}"
            look.silent.add(key)
            return
        look.n_added += known is None
        look.n_changed += known is not None and known.mark != mark
        kept = mark if place.is_settled(mark, seen_s) else ""
        look.new.append(Put(*key, kept, document.may_end, row))

    def _leave_out(self, place: RecordLocation, look: _Look, mark: str, why: str) -> None:
        key = place.key
        known = look.known.get(key)
        if known is not None:
            look.gone.append(known.id)
        if not place.is_gone():
            look.unreadable[place.name] = why
            if mark:
                self._unreadable[key] = mark, why


def _wanted(places: Iterable[RecordLocation], known: Iterable[Key]) -> dict[Key, RecordLocation]:
    """Return these places, and all of this machine that are known already."""
    wanted = {place.key: place for place in places}
    ours = own_host()
    also = (key for key in known if key not in wanted and key[0] == ours)
    return wanted | {key: RecordLocation(key[1]) for key in also}


def _is_as_before(place: RecordLocation, before: Known | None) -> bool:
    """Return whether the record has not changed, and its writer not died, since it was read."""
    if before is None or not before.mark:
        return False
    try:
        return place.is_as_at(before.mark) and not (
            before.may_end and not has_writer(place.location)
        )
    except Exception:  # whatever the library of a store raises; looking closer says what
        return False


def _is_known(new: Put, before: Known | None) -> bool:
    """Return whether exactly this is in the index already."""
    is_same = before is not None and (before.mark, before.may_end) == (new.mark, new.may_end)
    return is_same and bool(new.mark)


def _batches(places: Iterator[RecordLocation]) -> Iterator[list[RecordLocation]]:
    while some := list(islice(places, BATCH)):
        yield some
