"""``export``: runs into a file that others open."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from notebook_probe.catalogues import Runs
from notebook_probe.checks import file_ending
from notebook_probe.command_line.asked import RUN, add_catalogue, check_target, location_of
from notebook_probe.command_line.runs import write_csv
from notebook_probe.command_line.show import row_at
from notebook_probe.errors import QueryError
from notebook_probe.opened import OpenedRun, open_run
from notebook_probe.record.store.destination import new_file

__all__ = ["add"]

OF_MANY = (".csv", ".json")
OF_ONE = (".zip", ".nc", ".html")


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN)
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE",
        help=".csv or .json: a row per run; .zip: one packed record; .nc: its numbers; .html: its "
        "panel as a page",
    )
    parser.add_argument("--view", default="", help="name of a saved view that the page shows")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Write the file, and say where it is."""
    kind = file_ending("--to", asked.to, (*OF_MANY, *OF_ONE), QueryError)
    if asked.view and kind != ".html":
        raise QueryError(f"--view {asked.view}: --to {asked.to} is no page; .html is allowed")
    check_target(asked)
    places = [location_of(one, asked) for one in asked.runs]
    if kind in OF_MANY:
        _write_rows(places, asked)
    elif len(places) > 1:
        raise QueryError(f"--to {asked.to}: {kind} is of one run; {', '.join(OF_MANY)} are of many")
    else:
        _write_one(open_run(places[0]), kind, asked)
    print(asked.to)


def _write_one(run: OpenedRun, kind: str, asked: Namespace) -> None:
    if kind == ".html":
        run.to_html(asked.to, view=asked.view)
    elif kind == ".zip":
        run.pack(asked.to, overwrite=asked.overwrite)
    else:
        run.to_netcdf(asked.to, overwrite=asked.overwrite)


def _write_rows(places: list[str], asked: Namespace) -> None:
    table = Runs.of(map(row_at, places))
    with (
        new_file(asked.to, overwrite=asked.overwrite) as path,
        path.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        if Path(asked.to).suffix.lower() == ".csv":
            write_csv(table, file)
        else:
            json.dump(table.plain(), file, indent=1)
