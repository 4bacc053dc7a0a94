"""``show``: one run, from its record."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from notebook_probe.alerts import Alert
from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.jobs import as_jobs
from notebook_probe.catalogues.marks import read
from notebook_probe.catalogues.marks.clean_up import size
from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.printed import cell, plain, print_card, print_json
from notebook_probe.errors import RecordFormatError
from notebook_probe.opened import open_run
from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.record.store.nothing import nothing_at

__all__ = ["add", "row_at"]

HEAD = ("run", "run_id", "state", "created", "updated", "steps", "duration_s", "checkpoints")
SETTINGS = ("config.", "custom.", "train.", "annotations.", "device.", "git.")
RESULTS = ("loss.", "eval.", "best.", "last.")
MOST = 40
"""Lines of one kind."""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--json", action="store_true", help="print everything as a JSON object")
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print it."""
    place = location_of(asked.run, asked)
    row = row_at(place)
    if asked.json:
        alerts = open_run(place).alerts if row.get("alerts") else ()
        sentences = str(alerts).splitlines() if alerts else []
        print_json({**row, "found": [*map(_as_object, alerts)], "sentences": sentences})
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
    """Return the facts of a record, and its marks.

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
        folder = None if "://" in place else Path(place).expanduser()
        raise RecordFormatError(nothing_at(place, folder)) from error


def _as_object(alert: Alert) -> dict[str, Any]:
    """Return the line about an alert."""
    return {
        "rule": alert.rule,
        "step": alert.step,
        "text": alert.text,
        "modules": alert.modules,
        "quantities": alert.quantities,
        "severity": alert.severity,
        "began": alert.began,
        "consequence_of": alert.consequence_of,
    }


def _head(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, cell(row.get(name))) for name in HEAD if name != "run")
    yield "run", str(row.get("run"))
    yield "size", size(row.get("size_bytes") or 0)
    yield "tags", ", ".join(row["tags"])
    yield "note", row["note"]
    yield "archived", "yes" if row["archived"] else ""
