"""``show``: one run, as its record tells of it now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.jobs import as_jobs
from notebook_probe.catalogues.marks import read
from notebook_probe.catalogues.marks.clean_up import size
from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.printed import cell, plain, print_card, print_json
from notebook_probe.errors import RecordFormatError
from notebook_probe.opened import open_run
from notebook_probe.record.read.ranks import rank_folders

__all__ = ["add", "row_at"]

HEAD = ("run", "run_id", "state", "created", "updated", "steps", "duration_s", "checkpoints")
SETTINGS = ("config.", "custom.", "train.", "annotations.", "device.", "git.")
RESULTS = ("loss.", "eval.", "best.", "last.")
MOST = 40
"""Lines of one kind."""


def add(parser: ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--json", action="store_true", help="all that is known, as an object")
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print it."""
    place = location_of(asked.run, asked)
    row = row_at(place)
    if asked.json:
        print_json(row)
        return
    print(plain(str(row.get("name") or place)))
    print_card(_head(row))
    for kind in (SETTINGS, RESULTS):
        found = [(name, cell(value)) for name, value in row.items() if name.startswith(kind)]
        print()
        print_card(found[:MOST])
        if len(found) > MOST:
            print(f"{len(found) - MOST} more; --json has all")
    if row.get("alerts"):
        print()
        for line in str(open_run(place).alerts).splitlines()[:MOST]:
            print(plain(line))


def row_at(place: str) -> dict[str, Any]:
    """What a record tells of its run, and what is said of it from outside.

    Raises
    ------
    RecordFormatError
        No record is there.
    """
    try:
        ranks = rank_folders(place)
        first = next(iter(ranks.values()), place)
        row = {**read_document(first).row, **read(first)}
        (told,) = (
            as_jobs([{**row, "run": str(first)}], map(str, ranks.values())) if ranks else [row]
        )
        return dict(told)
    except FileNotFoundError as error:
        raise RecordFormatError(f"{place} is not a record") from error


def _head(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, cell(row.get(name))) for name in HEAD if name != "run")
    yield "run", str(row.get("run"))
    yield "size", size(row.get("size_bytes") or 0)
    yield "tags", ", ".join(row["tags"])
    yield "note", row["note"]
    yield "archived", "yes" if row["archived"] else ""
