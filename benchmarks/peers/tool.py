"""What every tool offers the benchmarks: to watch a workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.probe_sets import Probes, quantities_of
from benchmarks.workloads import Workload

__all__ = ["Absent", "Tool", "Watched", "installed", "knows"]


class Absent(Exception):
    """The tool is not here, or has nothing of the kind; says which."""


def _nothing() -> None:
    return None


def _unknown() -> float:
    return math.nan


@dataclass(frozen=True)
class Watched:
    """A workload under a tool."""

    step: Callable[[], None]
    """Trains one step and measures everything in it."""
    close: Callable[[], None] = _nothing
    self_timed: Callable[[], float] = _unknown
    """What the tool says it took of the last steps, per cent; NaN when it does not say."""


Tool: TypeAlias = Callable[[Workload, Probes, Path], Watched]
"""``tool(workload, probes, folder)`` begins to watch, every step; raises Absent."""


def installed(name: str) -> Any:
    """Import a package that may be missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise Absent(f"not installed ({error})") from error


def knows(probes: Probes, quantities: Collection[str]) -> None:
    """Check that a tool with these quantities can measure a set; raises Absent."""
    missing = sorted(quantities_of(probes) - set(quantities))
    if missing:
        raise Absent(f"has no {missing[0]}")
