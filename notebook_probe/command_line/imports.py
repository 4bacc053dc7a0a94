"""``import``: old runs of other tools as records."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from notebook_probe.command_line.printed import plain, print_json
from notebook_probe.old_runs import import_runs
from notebook_probe.old_runs.importing import ImportedRun

__all__ = ["add"]

INCOMPLETE = 1


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "path", nargs="+", metavar="PATH", help="a run of another tool, or a folder with such runs"
    )
    parser.add_argument("--to", required=True, metavar="FOLDER", help="folder for the records")
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Import them, a line for each; the exit code is 1 if one could not be imported."""
    paths = (Path(one).expanduser() for one in asked.path)
    outcomes: list[ImportedRun] = []
    for one in import_runs(paths, Path(asked.to).expanduser()):
        outcomes.append(one)
        if not asked.json:
            print(plain(f"{one.source} -> {one.target or 'not imported'}: {one.text}"))
    if asked.json:
        print_json(
            [
                {
                    "source": str(one.source),
                    "record": None if one.target is None else str(one.target),
                    "text": one.text,
                }
                for one in outcomes
            ]
        )
    return INCOMPLETE if any(one.target is None for one in outcomes) else 0
