"""Step time under each tool: probe sets P1 to P4, every step, on three workloads."""

from __future__ import annotations

import argparse
import math
import os
import platform
import tempfile
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

import torch

from benchmarks.pairs import Pairs, alone, paired
from benchmarks.peers import TOOLS, Absent
from benchmarks.probe_sets import SETS
from benchmarks.selection import add_selection
from benchmarks.small_workloads import OPTIMIZERS, with_optimizer
from benchmarks.table import Table
from benchmarks.targets import is_judged_by_pairs, self_timed_ratio, target
from benchmarks.values import largest_errors
from benchmarks.workloads import WORKLOADS, Workload, twins

__all__ = ["add_arguments", "run"]

NAMED = ("torch", "numpy", "tensorboard", "wandb")

COLUMNS = {
    "workload": 9,
    "set": 3,
    "tool": 11,
    "pairs": 6,
    "quartiles": 13,
    "n": 3,
    "total": 6,
    "threads": 7,
    "children": 8,
    "self-timed": 10,
    "target": 8,
    "judged by": 10,
    "met": 3,
}

READING = """
pairs       CPU time of the watched step over that of its plain twin: the median over n pairs.
            The tool "nothing" tells how far from 1 that is when nothing is measured, "floor" what
            the arithmetic alone takes, called from the barest hooks.
total       ratio of the sums: has what a median leaves out, such as work every 100th step
threads     what the process's other threads, such as a writer, add to every ratio here; measured,
            like what is self-timed, on watched steps that follow each other, as in training
children    to be added: CPU time of child processes, from start to end, over that of as many plain
            steps; without those that outlive their parent (wandb's gatherer of system metrics)
self-timed  what the run says it takes of a step (status().cost_percent), and threads, as a ratio;
            with what torch takes to call our hooks, as it was measured when the run began
target      of ours. Long steps give few pairs, and two equal networks differ by 3 % anyway: there
            P1 to P3 are judged by what the run says. P4 is held against Taiyi's overhead.
"""


@dataclass(frozen=True)
class Cost:
    """What one tool takes at one set on one workload."""

    pairs: Pairs
    own: float
    """What the tool says of itself, as a ratio; NaN when it does not."""
    threads_s: float
    """CPU time of the process's other threads, per watched step."""
    children_s: float
    """CPU time of ended child processes, per watched step."""

    @property
    def threads(self) -> float:
        """What other threads add to the ratio."""
        return self.threads_s / self.pairs.plain_s

    @property
    def ratio(self) -> float:
        return self.pairs.ratio() + self.threads

    @property
    def self_timed(self) -> float:
        """Of training alone; what runs on other threads times nobody."""
        return self.own + self.threads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, sets=SETS, workloads=WORKLOADS, tools=TOOLS)
    parser.add_argument(
        "--optimizer", choices=OPTIMIZERS, help="of every workload (default: each its own)"
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="for each line, at least (default 30)"
    )


def run(chosen: argparse.Namespace) -> None:
    """Print one line per workload, set and tool; then what the columns mean."""
    torch.set_num_threads(1)
    print(f"step time, CPU, 1 thread, {platform.machine()}{_load()}; {_versions()}\n")
    table, checked = Table(COLUMNS), []
    for workload in chosen.workloads:
        for probes in chosen.sets:
            measured = _print_group(table, workload, probes, chosen)
            if "ours" in measured:
                checked.append((workload, probes))
    print(READING)
    for workload, probes in checked:
        errors = largest_errors(workload, probes)
        print(f"{workload} {probes}, largest errors against float64: {errors}", flush=True)


def _print_group(
    table: Table, workload: str, probes: str, chosen: argparse.Namespace
) -> dict[str, float]:
    """The lines of one set on one workload, ours last: its target may need a peer's ratio."""
    ratios: dict[str, float] = {}
    for tool in sorted(chosen.tools, key=lambda tool: tool == "ours"):
        try:
            pair = twins(_made, workload, chosen.optimizer)
            cost = _measured(*pair, probes, tool, chosen.seconds)
        except Absent as reason:
            table.row(workload, probes, tool, f"absent: {reason}")
            continue
        ratios[tool] = cost.ratio
        judged = _judged(workload, probes, ratios, cost) if tool == "ours" else ()
        table.row(workload, probes, tool, *_figures(cost), *judged)
    return ratios


def _made(workload: str, optimizer: str | None) -> Workload:
    made = WORKLOADS[workload]()
    return with_optimizer(made, optimizer) if optimizer else made


def _measured(twin: Workload, plain: Workload, probes: str, tool: str, seconds: float) -> Cost:
    children_s = _children_s()
    with tempfile.TemporaryDirectory() as folder:
        watched = TOOLS[tool](twin, SETS[probes], Path(folder))
        try:
            n_alone, threads_s = alone(watched.step, seconds=seconds / 2)
            own = self_timed_ratio(watched.self_timed())
            alone(plain.step, seconds=0.0)
            pairs = paired(watched.step, plain.step, seconds=seconds / 2)
        finally:
            watched.close()
    children_s = _children_s() - children_s
    return Cost(pairs, own, threads_s, children_s / (n_alone + pairs.n))


def _figures(cost: Cost) -> tuple[str, ...]:
    pairs, threads = cost.pairs, cost.threads
    return (
        f"{cost.ratio:.3f}",
        f"{pairs.ratio(0.25) + threads:.3f}-{pairs.ratio(0.75) + threads:.3f}",
        str(pairs.n),
        f"{pairs.total_ratio() + threads:.3f}",
        f"{threads:.3f}",
        f"{cost.children_s / pairs.plain_s:.3f}",
        "" if math.isnan(cost.self_timed) else f"{cost.self_timed:.4f}",
    )


def _judged(
    workload: str, probes: str, ratios: dict[str, float], cost: Cost
) -> tuple[str, str, str]:
    """The largest ratio allowed, which figure is held against it, and whether it is met."""
    limit = target(probes, workload, ratios)
    if math.isnan(limit):
        return "", "", "?"
    by_pairs = is_judged_by_pairs(probes, workload)
    ratio = cost.ratio if by_pairs else cost.self_timed
    met = "yes" if ratio <= limit else "NO"
    return f"<= {limit:.3f}", "pairs" if by_pairs else "self-timed", met


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _versions() -> str:
    installed = {each.name: each.version for each in distributions()}
    return ", ".join(f"{name} {installed[name]}" for name in NAMED if name in installed)


def _load() -> str:
    return f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
