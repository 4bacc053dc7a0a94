"""The training loop: what it adds to a bare one, beside other trainers, and what a save takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch

from benchmarks.loop import checkpoint, epochs, overhead, step

__all__ = ["add_arguments", "run"]

PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "overhead": overhead.run,
    "step": step.run,
    "epochs": epochs.run,
    "checkpoint": checkpoint.run,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument("--turns", type=int, default=15, help="of each variant (default 15)")
    parser.add_argument("--steps", type=int, default=1000, help="of a turn (default 1000)")
    parser.add_argument("--mb", type=float, default=100.0, help="of a checkpoint (default 100)")


def run(chosen: argparse.Namespace) -> None:
    """Print the table of each part."""
    torch.set_num_threads(1)
    for part in chosen.parts:
        PARTS[part](chosen)
        print()
