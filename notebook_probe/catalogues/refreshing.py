"""Bringing an index up to date: what has changed is read, what is gone is forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.finding import Place
from notebook_probe.catalogues.finding.place import own_host
from notebook_probe.catalogues.index.index import Index, Known, Put
from notebook_probe.errors import RecordFormatError
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.writing import has_writer

__all__ = ["Refreshed", "Refresher"]

AT_ONCE = 8
"""Stores that are asked at a time."""
BATCH = 200
"""Rows that are kept together: an interrupted build goes on after the last of them."""


@dataclass(frozen=True)
class Refreshed:
    """What has changed since the last look.

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
    """What was found at one look."""

    known: Mapping[tuple[str, str], Known]
    new: list[Put] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    n_added: int = 0
    n_changed: int = 0


class Refresher:
    """Keeps an index as the records say.

    Parameters
    ----------
    said_of : callable
        What is said of a run from outside, as a part of its row.
    """

    def __init__(self, index: Index, said_of: Callable[[Location], Mapping[str, Any]]) -> None:
        self._index, self._said_of = index, said_of
        self._unreadable: dict[tuple[str, str], tuple[str, str]] = {}

    def refresh(self, places: Iterable[Place]) -> Refreshed:
        """Look at these places, and at all of this machine that are known already.

        Raises
        ------
        sqlalchemy.exc.DBAPIError
            The database cannot be read or written; what was kept before stays.
        """
        look = _Look(self._index.known())
        wanted = {place.key: place for place in places}
        ours = own_host()
        for key in look.known.keys() - wanted.keys():
            if key[0] == ours:
                wanted[key] = Place(key[1])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            elsewhere = (place for (host, _), place in wanted.items() if not host)
            for key, place in wanted.items():
                if key[0] and not _is_as_before(place, look.known.get(key)):
                    self._look_at(place, look)
                    if len(look.new) >= BATCH:
                        self._keep(look)
            for some in _batches(elsewhere):
                list(pool.map(lambda place: self._look_at(place, look), some))
                self._keep(look)
        self._keep(look)
        self._index.drop(look.gone)
        return Refreshed(look.n_added, look.n_changed, len(look.gone), look.unreadable)

    def _keep(self, look: _Look) -> None:
        if look.new:
            known = self._index.known()  # another process may have been quicker
            self._index.put(one for one in look.new if not _is_known(one, known.get(one[:2])))
            look.new.clear()

    def _look_at(self, place: Place, look: _Look) -> None:
        key = place.key
        known = look.known.get(key)
        seen_s = time.time()
        try:
            if _is_as_before(place, known):
                return
            mark = place.mark()
            if not mark:
                look.gone += [known.id] if known is not None else []
                return
            failed = self._unreadable.get(key)
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
            return
        look.n_added += known is None
        look.n_changed += known is not None and known.mark != mark
        kept = mark if place.is_settled(mark, seen_s) else ""
        look.new.append(Put(*key, kept, document.may_end, row))

    def _leave_out(self, place: Place, look: _Look, mark: str, why: str) -> None:
        key = place.key
        known = look.known.get(key)
        if known is not None:
            look.gone.append(known.id)
        if not place.is_gone():
            look.unreadable[place.name] = why
            if mark:
                self._unreadable[key] = mark, why


def _is_as_before(place: Place, before: Known | None) -> bool:
    """Whether nothing has changed, and nobody has died, since the record was read."""
    if before is None or not before.mark:
        return False
    try:
        return before.mark == place.mark() and not (
            before.may_end and not has_writer(place.location)
        )
    except Exception:  # whatever the library of a store raises; looking closer says what
        return False


def _is_known(new: Put, before: Known | None) -> bool:
    """Whether just this is known already."""
    is_same = before is not None and (before.mark, before.may_end) == (new.mark, new.may_end)
    return is_same and bool(new.mark)


def _batches(places: Iterator[Place]) -> Iterator[list[Place]]:
    while some := list(islice(places, BATCH)):
        yield some
