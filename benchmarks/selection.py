"""``--sets P1,P2 --workloads MLP --tools ours,tensorboard``: parts of what a benchmark has."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection

__all__ = ["add_selection"]


def add_selection(parser: argparse.ArgumentParser, **options: Collection[str]) -> None:
    """Give ``parser`` an option per keyword that takes some of its values; all by default."""
    for name, known in options.items():
        parser.add_argument(
            f"--{name}",
            type=_some_of(known),
            default=list(known),
            metavar="A,B",
            help=f"some of: {', '.join(known)}",
        )


def _some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        names = text.split(",")
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(
                f"no {', '.join(unknown)}; known: {', '.join(known)}; no spaces between"
            )
        return names

    return read
