"""``runs``: the table of the runs that meet a condition."""

from __future__ import annotations

import csv
import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from notebook_probe.catalogues import Runs
from notebook_probe.catalogues.query import field_named
from notebook_probe.command_line.asked import add_catalogue, count, opened
from notebook_probe.command_line.printed import cell, fitting, plain, print_json, width
from notebook_probe.errors import QueryError

__all__ = ["add", "write_csv"]

USUAL = (
    ("rank", "ranks", "state", "steps", "loss.last"),
    ("config.", "custom.", "train."),
    ("best.", "eval."),
    ("tags", "note", "alerts"),
    ("duration_s",),
)


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "folder",
        nargs="*",
        metavar="FOLDER",
        help="only runs in these folders, also of other tools",
    )
    parser.add_argument(
        "--where", metavar="CONDITION", help="such as \"params.lr < 1e-3 and tags has 'a'\""
    )
    parser.add_argument(
        "--sort", metavar="COLUMN", help="column to sort by, such as best.eval_accuracy"
    )
    parser.add_argument("-d", "--descending", action="store_true", help="largest first")
    parser.add_argument("--limit", type=count, metavar="N", help="maximum number of runs")
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="such as 'state,params.lr,best.*'; by default those that differ",
    )
    parser.add_argument("--archived", action="store_true", help="include archived runs")
    parser.add_argument("--ranks", action="store_true", help="list each rank of a job")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        action="store_true",
        help="print a list of objects with these columns; --columns '*' for all",
    )
    form.add_argument(
        "--csv", action="store_true", help="print CSV: all columns, or those of --columns"
    )
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print them."""
    folders = [str(_existing(one)) for one in asked.folder]
    with opened(asked, folders) as cat:
        table = cat.runs(
            asked.where,
            sort=asked.sort,
            descending=asked.descending,
            limit=None if folders else asked.limit,
            archived=asked.archived,
            ranks=asked.ranks,
        )
    if folders:
        table = table.where("run", lambda run: _is_below(str(run), folders))
        table = replace(table, rows=table.rows[: asked.limit])
    wanted = [field_named(one.strip()) for one in (asked.columns or "").split(",") if one.strip()]
    if wanted and len(table):
        columns = table.matching(*wanted)
        table = table.select(*columns)
    else:
        columns = _usual(table)
    if asked.json:
        print_json(table.plain() if wanted else _short(table, columns))
    elif asked.csv:
        write_csv(table, sys.stdout)
    else:
        _print(table, columns)


def _existing(folder: str) -> Path:
    """Return the absolute path of a folder, or raise `QueryError`."""
    path = Path(folder).expanduser().resolve()
    if not path.exists():
        raise QueryError(f"there is no folder {folder}; --root takes a URL, --where a condition")
    return path


def _is_below(run: str, folders: Sequence[str]) -> bool:
    return any(run == folder or run.startswith(f"{folder}{os.sep}") for folder in folders)


def _short(table: Runs, columns: list[str]) -> list[dict[str, Any]]:
    """Return the location and the name of each run, and the values it has of some columns."""
    kept = dict.fromkeys(("run", "name", *columns))
    return [
        {name: row[name] for name in kept if row.get(name) is not None} for row in table.plain()
    ]


def _usual(table: Runs) -> list[str]:
    """Return default columns: progress, settings that differ, results, and marks."""
    shown = table.shown()
    return [one for kind in USUAL for one in shown if one.startswith(kind)]


def write_csv(table: Runs, file: TextIO) -> None:
    """All columns; lists as JSON, and nothing where a run does not tell."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_csv_cell(row[one]) for one in table.columns] for row in table.plain())


def _csv_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | bool) else value


def _print(table: Runs, columns: list[str]) -> None:
    if not len(table):
        print("no runs")
        return
    named = [one for one in columns if one not in ("run", "name")] or ["run"]
    rows = zip(table.labels, table, strict=True)
    lines = [
        ("run", *map(plain, named)),
        *((cell(label), *(cell(row[one]) for one in named)) for label, row in rows),
    ]
    text, n_left = fitting(lines, width())
    print(text)
    if n_left:
        left = ", ".join(named[len(named) - n_left :][:6])
        print(f"{n_left} columns more than fit: {cell(left)}; --columns chooses")
