"""Every architecture of some libraries, trained for three steps with and without a run.

Of each architecture with random weights, small inputs and, where a library lets one choose, a
small configuration: weights, buffers, optimizer states and random generators must be equal bit for
bit, and calls, mean and standard deviation of the outputs, and norms of weights and gradients of
every module without children must be those that float64 hooks of a twin find.

Each result is added to a file, and what the file has is not tried again: so an interrupted run can
be continued, and the work divided: ``python -m benchmarks zoo --part 3/8``. ``--save`` adds the
file to tried.json, and writes docs/reference/architectures.md; ``--new`` tries only what tried.json
does not have. It runs where the dependency group `graphs` is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from benchmarks.table import Table
from benchmarks.zoo.apart import tried_apart
from benchmarks.zoo.architectures import LIBRARIES, Architecture, architectures_of
from benchmarks.zoo.outcome import Outcome, read
from benchmarks.zoo.tried import TRIED, page_of, read_tried, with_outcomes, write_tried

__all__ = ["add_arguments", "run"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "architectures.md"
COLUMNS = {"architecture": 44, "weights": 9, "modules": 7, "values": 6, "seconds": 7, "result": 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--libraries", nargs="*", default=list(LIBRARIES), choices=list(LIBRARIES))
    parser.add_argument("--names", nargs="*", help="of architectures; all where none is given")
    parser.add_argument("--part", default="1/1", help="such as 3/8, of all in a fixed random order")
    parser.add_argument("--most-weights", type=float, default=24e6, help="of an architecture")
    parser.add_argument("--limit", type=float, default=120, help="seconds for an architecture")
    parser.add_argument("--minutes", type=float, default=360, help="after which none is begun")
    parser.add_argument("--results", type=Path, default=Path("build/zoo.jsonl"))
    parser.add_argument("--new", action="store_true", help="leave out what tried.json has")
    parser.add_argument("--save", action="store_true", help="add the results to the page only")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per architecture; end with an error if one differs."""
    if chosen.save:
        _save(chosen.results)
        return
    until = time.monotonic() + 60 * chosen.minutes
    done = {(one.library, one.name) for one in read(chosen.results)}
    if chosen.new:
        done |= {
            (library, name) for library, its in read_tried(TRIED).items() for name in its.names
        }
    chosen.results.parent.mkdir(parents=True, exist_ok=True)
    table, bad = Table(COLUMNS), []
    for one in _wanted(chosen):
        if (one.library, one.name) in done:
            continue
        if time.monotonic() > until:
            break
        outcome = tried_apart(one, int(chosen.most_weights), chosen.limit)
        with chosen.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome._asdict()) + "\n")
        _print(table, outcome)
        if outcome.is_bad:
            bad.append(one.name)
    if bad:
        sys.exit(f"not equal: {', '.join(bad)}")


def _save(results: Path) -> None:
    tried = with_outcomes(read_tried(TRIED), read(results))
    for library, its in tried.items():
        its.n_listed = len(architectures_of(library)) or its.n_listed  # 0 if it is not installed
    write_tried(TRIED, tried)
    PAGE.write_text(page_of(tried), "utf-8")


def _wanted(chosen: argparse.Namespace) -> list[Architecture]:
    every = [one for library in chosen.libraries for one in architectures_of(library)]
    if chosen.names:
        return [one for one in every if one.name in chosen.names]
    random.Random(0).shuffle(every)
    nth, n_parts = map(int, chosen.part.split("/"))
    return every[nth - 1 :: n_parts]


def _print(table: Table, outcome: Outcome) -> None:
    numbers = (outcome.n_weights, outcome.n_modules, outcome.n_values)
    counts = (f"{number:,}" if number else "" for number in numbers)
    place = f"{outcome.library} {outcome.name}"
    table.row(place, *counts, f"{outcome.seconds:.1f}", outcome.told)
