"""Removing runs: first what would go and what would stay, then, if wanted, the removal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from notebook_probe.catalogues.marks.record_files import StaysError
from notebook_probe.catalogues.marks.removal import Removal, planned
from notebook_probe.tabular import html_table, text_table

__all__ = ["CleanUp", "Deleted", "age", "clean_up", "size"]

UNITS = ("B", "kB", "MB", "GB", "TB")
HEAD = ("run", "name", "size", "age", "checkpoints")


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of a clean-up.

    Attributes
    ----------
    gone : tuple of str
        The places of runs that are no more.
    stays : mapping of str to str
        Places of the others, and why each is still there.
    nbytes : int
        Freed bytes.
    """

    gone: tuple[str, ...]
    stays: Mapping[str, str]
    nbytes: int

    def __repr__(self) -> str:
        return "\n".join(
            [f"{_runs(self.gone)} deleted, {size(self.nbytes)}", *_lines_of_stays(self.stays)]
        )


@dataclass(frozen=True, slots=True, repr=False)
class CleanUp:
    """Runs that would be deleted, and the reasons why others would stay.

    Nothing is deleted before `delete`. Then a run is deleted if its folder, or its packed file,
    still contains its record and nothing else, and no process writes it, a job with all its ranks
    or not at all; its checkpoints are deleted if its record and their folder's list have them and
    they were not written since.

    Attributes
    ----------
    runs : tuple of Removal
        ``run``, ``name``, ``nbytes``, ``age_s``, ``checkpoints`` of each, and ``left``: checkpoints
        that would stay.
    stays : mapping of str to str
    """

    runs: tuple[Removal, ...]
    stays: Mapping[str, str]

    @property
    def nbytes(self) -> int:
        """Bytes that would be freed."""
        return sum(one.nbytes for one in self.runs)

    def delete(self) -> Deleted:
        """Delete what is shown, except what has changed since.

        Returns
        -------
        Deleted
            Deleted runs, and kept ones with the reason.

        Examples
        --------
        >>> cat.clean_up("state == 'killed' and steps < 100").delete()  # doctest: +SKIP
        """
        gone: list[Removal] = []
        stays = dict(self.stays)
        for one in self.runs:
            try:
                one.apply()
            except StaysError as why:
                stays[one.run] = str(why)
            else:
                gone.append(one)
        return Deleted(tuple(one.run for one in gone), stays, sum(one.nbytes for one in gone))

    def __repr__(self) -> str:
        head = f"{_runs(self.runs)} would be deleted, {size(self.nbytes)}"
        table = [text_table([HEAD, *map(_cells, self.runs)])] if self.runs else []
        left = [f"stays: {one}" for run in self.runs for one in run.left]
        return "\n".join([head, *table, *left, *_lines_of_stays(self.stays)])

    def _repr_html_(self) -> str:
        head = f"<p>{_runs(self.runs)} would be deleted, {size(self.nbytes)}</p>"
        rows = ([escape(cell) for cell in _cells(one)] for one in self.runs)
        left = [f"stays: {one}" for run in self.runs for one in run.left]
        told = "<br>".join(map(escape, [*left, *_lines_of_stays(self.stays)]))
        return head + html_table(dict.fromkeys(HEAD, ""), rows) + f"<p>{told}</p>"


def clean_up(rows: Iterable[Mapping[str, Any]]) -> CleanUp:
    """Return what would be deleted of these rows: ``run``, ``run_id`` and ``state``."""
    runs: list[Removal] = []
    stays: dict[str, str] = {}
    for row in rows:
        try:
            runs.append(planned(row))
        except StaysError as why:
            stays[str(row.get("run"))] = str(why)
    return CleanUp(tuple(runs), stays)


def size(nbytes: float) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> size(0), size(1234), size(5e9)
    ('0 B', '1.2 kB', '5.0 GB')
    """
    unit = 0
    while nbytes >= 1000 and unit < len(UNITS) - 1:
        nbytes, unit = nbytes / 1000, unit + 1
    return f"{nbytes:.1f} {UNITS[unit]}" if unit else f"{nbytes:.0f} B"


def age(seconds: float) -> str:
    """Return a duration in words, such as ``"2 h"``.

    Examples
    --------
    >>> age(5), age(7200), age(864000)
    ('5 s', '2 h', '10 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (unit != "d" and seconds >= length):
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _cells(one: Removal) -> tuple[str, ...]:
    return one.run, one.name, size(one.nbytes), age(one.age_s), str(len(one.checkpoints) or "")


def _runs(runs: tuple[object, ...]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"


def _lines_of_stays(stays: Mapping[str, str]) -> list[str]:
    return [f"stays: {run}: {why}" for run, why in stays.items()]
