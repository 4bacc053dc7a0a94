"""``skill``: a page about the commands for coding agents, from the package."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib.resources import files

__all__ = ["SKILL", "add"]

SKILL = files("notebook_probe.command_line").joinpath("skill.md")


def add(parser: ArgumentParser) -> None:
    """Add no options."""
    parser.set_defaults(do=do)


def do(_: Namespace) -> None:
    """Print the page."""
    print(SKILL.read_text(encoding="utf-8"), end="")
