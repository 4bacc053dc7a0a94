"""How much memory watching takes as training goes on, beside a run that nobody watches.

A process per line. After a warm-up the resident memory is read, and again some steps later: as it
is, and once more when Python's garbage is collected and malloc has given back what it can
(``malloc_trim``). What the second reading lacks was fragmentation, not anything kept.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.peers import TOOLS, Absent
from benchmarks.probe_sets import SETS
from benchmarks.selection import add_selection
from benchmarks.table import Table
from benchmarks.workloads import WORKLOADS

__all__ = ["add_arguments", "resident_mb", "run"]

LIMIT_MB = 5.0
WARM_UP, REFILL = 200, 50


COLUMNS = {
    "workload": 9,
    "set": 3,
    "tool": 11,
    "as it is": 8,
    "trimmed": 8,
    "beside nothing": 14,
    "trimmed too": 11,
    "target": 6,
    "met": 3,
}


@dataclass(frozen=True)
class Growth:
    """MB per 1,000 steps."""

    as_is: float
    trimmed: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, sets=SETS, workloads=WORKLOADS, tools=TOOLS)
    parser.set_defaults(workloads=["MLP"])
    parser.add_argument("--steps", type=int, default=2000, help="after the warm-up (default 2000)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per workload, set and tool."""
    print(f"resident memory, MB per 1,000 steps; {chosen.steps} steps after {WARM_UP}\n")
    table = Table(COLUMNS)
    for workload in chosen.workloads:
        null = _in_a_process(workload, "P1", "nothing", chosen.steps)
        table.row(workload, "", "nothing", f"{null.as_is:.2f}", f"{null.trimmed:.2f}")
        for probes in chosen.sets:
            for tool in (tool for tool in chosen.tools if tool != "nothing"):
                try:
                    growth = _in_a_process(workload, probes, tool, chosen.steps)
                except Absent as reason:
                    table.row(workload, probes, tool, f"absent: {reason}")
                else:
                    table.row(workload, probes, tool, *_figures(growth, null, tool == "ours"))


def _figures(growth: Growth, null: Growth, is_judged: bool) -> list[str]:
    beside, trimmed_too = growth.as_is - null.as_is, growth.trimmed - null.trimmed
    figures = [growth.as_is, growth.trimmed, beside, trimmed_too]
    judged = [f"<= {LIMIT_MB}", "yes" if beside <= LIMIT_MB else "NO"] if is_judged else []
    return [*(f"{figure:.2f}" for figure in figures), *judged]


def _in_a_process(workload: str, probes: str, tool: str, steps: int) -> Growth:
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_growth, workload, probes, tool, steps).result()


def _growth(workload: str, probes: str, tool: str, steps: int) -> Growth:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        watched = TOOLS[tool](WORKLOADS[workload](), SETS[probes], Path(folder))
        for _ in range(WARM_UP):
            watched.step()
        trimmed = _trimmed_mb()
        for _ in range(REFILL):  # what was given back and is used in every step
            watched.step()
        as_is = resident_mb()
        for _ in range(steps):
            watched.step()
        grown, grown_trimmed = resident_mb() - as_is, _trimmed_mb() - trimmed
        watched.close()
    return Growth(1000 * grown / steps, 1000 * grown_trimmed / (steps + REFILL))


def resident_mb() -> float:
    """Of this process; Linux tells it here."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _trimmed_mb() -> float:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
    return resident_mb()
