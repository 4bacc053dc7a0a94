"""The record: what a row costs, how fast it is written and read, beside xarray and TensorBoard."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.record import growing, names, peers, reading, rows, wide

__all__ = ["add_arguments", "run"]

PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "rows": rows.run,
    "peers": peers.run,
    "names": names.run,
    "reading": reading.run,
    "wide": wide.run,
    "growing": growing.run,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument(
        "--values", type=float, default=1e7, help="written by each writer (default 1e7)"
    )
    parser.add_argument("--steps", type=float, default=1e6, help="of a long run (default 1e6)")


def run(chosen: argparse.Namespace) -> None:
    """Print the table of each part."""
    for part in chosen.parts:
        PARTS[part](chosen)
        print()
