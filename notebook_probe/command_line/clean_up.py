"""``clean-up``: what would be deleted, and with ``--delete`` its deletion."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from notebook_probe.command_line.asked import add_catalogue, opened
from notebook_probe.command_line.printed import plain

__all__ = ["add"]


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--where",
        required=True,
        metavar="CONDITION",
        help="such as \"state == 'killed' and steps < 100\"",
    )
    parser.add_argument("--delete", action="store_true", help="delete the listed runs")
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Show it, and delete it if that is wanted."""
    with opened(asked) as cat:
        found = cat.clean_up(asked.where)
        _print(found)
        if asked.delete:
            _print(found.delete())
        elif found.runs:
            print("nothing is deleted yet: --delete does")


def _print(told: object) -> None:
    for line in str(told).splitlines():
        print(plain(line) if "  " not in line else line)
