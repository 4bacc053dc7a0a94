"""Count of the alerts that are wrong: 119 healthy trainings, and 173 causes in 90 of them.

A rule is right if it names the cause within 50 steps, or 100; every alert of a healthy training
is false. Thresholds are set on some parts and judged on others, with other networks, data
and optimizers. Goals: at most 1 healthy training with an alert, three quarters of the causes named
within 100 steps, and at most 3 % with another cause alone. What may be intended is named by a
remark, which is no alert.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch

from benchmarks.rules.recipe import PARTS, Case
from benchmarks.rules.registry import CASES
from benchmarks.rules.report import line, print_rules, print_totals
from benchmarks.rules.runner import Outcome, Watching, trained
from benchmarks.rules.verdict import Verdict, judged

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which trainings, and what is measured."""
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument(
        "--names", default="*", help="globs over the names of the trainings, by commas"
    )
    parser.add_argument("--probes", default="default,alerts", help="presets, by commas")
    parser.add_argument("--budget", choices=("default", "none"), default="default")
    parser.add_argument("--processes", type=int, default=1)


def run(chosen: argparse.Namespace) -> None:
    """Print a line per training, a table of the rules, and the totals."""
    parts = PARTS if chosen.part == "all" else (chosen.part,)
    cases = [
        case
        for case in CASES.values()
        if case.recipe.part in parts
        and any(fnmatch(case.name, glob) for glob in chosen.names.split(","))
    ]
    verdicts: dict[str, Verdict] = {}
    watching = Watching(tuple(chosen.probes.split(",")), has_budget=chosen.budget == "default")
    for case, outcome in _outcomes(cases, watching, chosen.processes):
        verdict = verdicts[case.name] = judged(case, outcome)
        print(line(verdict, verdicts.get(case.recipe.name)), flush=True)
    print_rules([*verdicts.values()])
    print_totals([*verdicts.values()])


def _outcomes(
    cases: Iterable[Case], watching: Watching, processes: int
) -> Iterator[tuple[Case, Outcome]]:
    """In the order of the cases; by name in other processes, as a recipe is a function."""
    cases = [*cases]
    if processes == 1:
        yield from ((case, trained(case, watching)) for case in cases)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        outcomes = pool.map(_by_name, [case.name for case in cases], [watching] * len(cases))
        yield from zip(cases, outcomes, strict=True)


def _by_name(name: str, watching: Watching) -> Outcome:
    return trained(CASES[name], watching)
