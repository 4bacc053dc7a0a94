"""Opening a catalogue: the usual one of this machine, or one that is named."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_probe.catalogues.index.database import (
    IN_MEMORY,
    INDEX,
    is_damaged,
    open_database,
    reaching,
    without_password,
)
from notebook_probe.catalogues.query import Where
from notebook_probe.catalogues.run_catalogue import Catalogue
from notebook_probe.catalogues.runs import Runs
from notebook_probe.errors import RecordWarning
from notebook_probe.home import home
from notebook_probe.record.store.destination import import_extra
from notebook_probe.record.store.location import Location

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["catalogue", "runs"]


def catalogue(
    place: str | PathLike[str] | None = None,
    root: Location | PathLike[str] | Iterable[Location | PathLike[str]] | None = None,
) -> Catalogue:
    """Open a catalogue of runs.

    Parameters
    ----------
    place : str or path, optional
        The database of its index: a file for SQLite, ``"postgresql://host/lab"``; by default
        ``catalogue.sqlite`` in ``NOTEBOOK_PROBE_HOME``, else in ``~/.notebook_probe``.
    root : path, URL, RemoteStore or several, optional
        Places to search for records, in addition to those written on this machine:
        ``"/shared/runs"``, ``"s3://bucket/runs"``.

    Raises
    ------
    MissingExtraError
        ``pip install 'notebook-probe[catalogue]'``, and ``[postgres]`` for that.
    RecordFormatError
        The index is one of a newer version.
    CatalogueError
        The database cannot be reached, or is none.

    Warns
    -----
    RecordWarning
        The default one cannot be written: it is in memory then.

    Examples
    --------
    >>> cat = nbp.catalogue(root="/shared/runs")  # doctest: +SKIP
    >>> cat.runs("state == 'running'")  # doctest: +SKIP
    """
    import_extra("sqlalchemy", "catalogue", "a catalogue")
    roots = () if root is None else _roots(root)
    if place is None:
        return Catalogue(_default_database(), roots)
    with reaching(without_password(place)):
        return Catalogue(open_database(place), roots)


def runs(
    where: Where = None,
    *,
    sort: str | None = None,
    descending: bool = False,
    limit: int | None = None,
    archived: bool = False,
    ranks: bool = False,
) -> Runs:
    """Every run that was recorded on this machine, as a table; see `Catalogue.runs`.

    Examples
    --------
    >>> nbp.runs("params.lr < 1e-3 and state == 'finished'")  # doctest: +SKIP
    >>> nbp.runs(sort="best.eval_accuracy", descending=True, limit=2).explore()  # doctest: +SKIP
    """
    return _usual().runs(
        where, sort=sort, descending=descending, limit=limit, archived=archived, ranks=ranks
    )


_opened: dict[Path, Catalogue] = {}


def _usual() -> Catalogue:
    """Return the default catalogue, opened once."""
    where = home()
    if where not in _opened:
        _opened[where] = catalogue()
    return _opened[where]


def _roots(root: Any) -> list[Location]:
    several = [root] if isinstance(root, str | PathLike) or not hasattr(root, "__iter__") else root
    return [Path(one) if isinstance(one, PathLike) else one for one in several]


def _default_database() -> Engine:
    """Open the user's database, new if damaged; in memory if nothing can be written."""
    from sqlalchemy.exc import DatabaseError, DBAPIError

    try:
        file = home() / INDEX
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            return open_database(file)
        except DatabaseError as error:
            if not is_damaged(error):
                raise
            # The index holds nothing that cannot be read from the records again.
            for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm"):
                file.with_name(name).unlink(missing_ok=True)
            return open_database(file)
    except (OSError, RuntimeError, DBAPIError) as error:
        text = f"the catalogue is kept in memory, as its file cannot be written: {error}"
        warnings.warn(text, RecordWarning, stacklevel=3)
        return open_database(IN_MEMORY)
