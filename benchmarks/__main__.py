"""``python -m benchmarks [NAME [options]]``: prints what was measured on this machine, now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib import import_module

BENCHMARKS = (
    "step_time",
    "idle",
    "memory",
    "panel",
    "quantities",
    "reductions",
    "record",
    "explorer_clicks",
    "explorer_refresh",
    "alerts",
    "rules",
    "attach_all",
    "budget",
    "honest",
    "growth",
    "compare",
    "loop",
    "summary",
    "lineage",
    "catalogue",
    "threads",
)
ELSEWHERE = ("gpu", "graphs", "programs", "good_runs", "compiled", "zoo")
"""Benchmarks that run only if they are named: they need another environment, or minutes."""


def main(arguments: list[str]) -> None:
    """Run the named benchmark, or all, each as it is by default, when none is named."""
    every = (*BENCHMARKS, *ELSEWHERE)
    named = [name for name in arguments[:1] if name in every]
    parser = _parser(named or every)
    for line in [arguments] if arguments else [[name] for name in BENCHMARKS]:
        chosen = parser.parse_args(line)
        chosen.run(chosen)


def _parser(benchmarks: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser for some benchmarks; each environment has what its own ones import."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(metavar="NAME")
    for name in benchmarks:
        benchmark = import_module(f"benchmarks.{name}")
        summary = (benchmark.__doc__ or "").splitlines()[0]
        options = names.add_parser(name, help=summary, description=benchmark.__doc__)
        benchmark.add_arguments(options)
        options.set_defaults(run=benchmark.run)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
