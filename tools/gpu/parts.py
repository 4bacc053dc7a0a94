"""The parts of a run on a GPU, the most important first; each is a command with a time limit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PARTS", "Part", "marked_files"]

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
MARK = "pytest.mark.gpu"
CASES = TESTS / "gpu"
FEW = "mlp or eager or slabs"
"""Cases that show on a CPU that the others can be run."""

Command = Callable[[str, Path], list[str]]
"""``command(device, folder)``: its arguments; it may write ``<name>.json`` into the folder."""


@dataclass(frozen=True)
class Part:
    """One command of the run.

    Attributes
    ----------
    name, about : str
    limit_s : float
        After which it is ended; what it wrote until then counts.
    command : callable
        ``command(device, folder)`` gives its arguments.
    """

    name: str
    about: str
    limit_s: float
    command: Command


@cache
def marked_files() -> tuple[Path, ...]:
    """Return the test files that have cases for a GPU, apart from those of `CASES`."""
    files = sorted(TESTS.rglob("test_*.py"))
    elsewhere = (file for file in files if CASES not in file.parents)
    return tuple(file for file in elsewhere if MARK in file.read_text("utf-8"))


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _device(device: str, folder: Path) -> list[str]:
    return _python("tools.gpu.card", "--device", device, "--json", str(folder / "device.json"))


def _pytest(device: str, *paths: Path) -> list[str]:
    chosen = "gpu" if device == "cuda" else "not gpu"
    options = ["-v", "-p", "no:cacheprovider", "--maxfail=40", "-m", chosen]
    if device != "cuda":
        options += ["-k", FEW]
    return _python("pytest", *options, *map(str, paths))


def _tests(device: str, folder: Path) -> list[str]:
    return _pytest(device, CASES)


def _others(device: str, folder: Path) -> list[str]:
    """Run them; on a CPU they are only found."""
    if device == "cuda":
        return _pytest(device, *marked_files())
    options = ("-q", "-p", "no:cacheprovider", "--collect-only", "-m", "gpu")
    return _python("pytest", *options, *map(str, marked_files()))


def _bench(device: str, folder: Path) -> list[str]:
    saved = ("--json", str(folder / "bench.json"))
    within = ("--within", "170") if device == "cuda" else ("--within", "40", "--seconds", "0")
    return _python("benchmarks.gpu", "--device", device, *within, *saved)


def _demo(device: str, folder: Path) -> list[str]:
    steps = "240" if device == "cuda" else "12"
    told = ("--folder", str(folder / "demo"), "--steps", steps, "--device", device, "--no-open")
    return _python("notebook_probe", "demo", *told)


PARTS = {
    part.name: part
    for part in (
        Part("device", "the card, its memory, versions", 40, _device),
        Part("tests", "values, waiting, weights, memory, graphs", 170, _tests),
        Part("bench", "pairs of a watched and a plain step, kernels per step", 220, _bench),
        Part("others", "every other test that is marked gpu", 60, _others),
        Part("demo", "python -m notebook_probe demo", 45, _demo),
    )
}
"""Their limits make nine minutes at most."""
