"""A watched training step on a GPU, compared with a plain one: CUDA events, time and kernels.

Two equal models train by turns, some steps at a time, so that the host can run ahead of the device
as it does in a training. Ratios are medians over pairs of turns; what is due in every step stands
beside hooks as one writes them by hand, with ``.item()``, and histograms of every gradient.
Random data, nothing is downloaded. On a CPU (``--device cpu``) small models show that all of it
runs; such ratios say nothing of a GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.launched import Launched, launched
from benchmarks.gpu.models import MODELS
from benchmarks.gpu.turns import by_turns
from benchmarks.gpu.variants import VARIANTS
from benchmarks.gpu.workload import PRECISIONS, made
from benchmarks.selection import add_selection
from benchmarks.table import Table

__all__ = ["add_arguments", "run"]

LIMIT = 1.06
"""Largest ratio of wall time for a run with the usual budget of 5 %."""
MAIN = ("default", "every step", "items")
"""The variants that are measured first."""
COLUMNS = {
    "model": 12,
    "precision": 9,
    "variant": 11,
    "step ms": 7,
    "wall": 6,
    "device": 6,
    "n": 3,
    "kernels": 7,
    "more": 6,
    "copies": 6,
    "met": 3,
}
READING = f"""
wall, device  time of the watched step over that of its plain twin, by the clock until the device
              has finished, and by CUDA events (on a CPU the clock again): medians over n pairs
kernels       launched by the plain step; more: by the watched one on top, on average of steps
copies        to the host, per watched step
default       nbp.watch(model) as it is, with its budget of 5 %: at most {LIMIT} by wall time
every step    the same quantities without a budget; alerts: those of the alert rules, too
items         hooks by hand as for TensorBoard: norms and means, each by .item()
histograms    of every gradient and weight by hand, 64 bins each, as wandb.watch(log="all") has them
"""


@dataclass(frozen=True)
class Line:
    """One row: what a variant costs on one model in one precision."""

    model: str
    precision: str
    variant: str
    step_ms: float
    wall: float
    device: float
    n: int
    kernels: float
    more: float
    copies: float
    met: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the row, as in the table."""
        times = f"{self.step_ms:.2f}", f"{self.wall:.3f}", f"{self.device:.3f}", str(self.n)
        counts = f"{self.kernels:.0f}", f"{self.more:.1f}", f"{self.copies:.2f}"
        return self.model, self.precision, self.variant, *times, *counts, self.met


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, models=MODELS, precisions=PRECISIONS, variants=VARIANTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of turns for each line (default 2)"
    )
    parser.add_argument(
        "--within", type=float, default=200.0, help="of all: no line is begun later (default 200)"
    )
    parser.add_argument("--json", type=Path, help="written after each line")


def run(chosen: argparse.Namespace) -> None:
    """Print a line for each precision, model and variant, as many as there is time for."""
    card = _card(chosen.device)
    print(f"a watched step compared with a plain one, on {card}, torch {torch.__version__}\n")
    table, begun = Table(COLUMNS), time.monotonic()
    lines: list[dict[str, Any]] = []
    left: list[str] = []
    broken: list[str] = []
    every = product(chosen.variants, chosen.precisions, chosen.models)
    for variant, precision, model in sorted(every, key=_rank):
        if time.monotonic() - begun > chosen.within:
            left.append(f"{model} {precision} {variant}")
            continue
        try:
            line = _measured(chosen.device, model, precision, variant, chosen.seconds)
        except Exception as error:  # the other lines are worth as much without it
            broken.append(f"{model} {precision} {variant}: {type(error).__name__}: {error}")
            table.row(model, precision, variant, type(error).__name__)
            continue
        table.row(*line.cells())
        lines.append(asdict(line))
        _save(chosen.json, card=card, rows=lines, no_time_for=left, failed_cases=broken)
    _save(chosen.json, card=card, rows=lines, no_time_for=left, failed_cases=broken)
    print(READING)
    if left:
        print(f"no time was left for: {', '.join(left)}")
    if broken:
        raise SystemExit("\n".join(broken))


def _rank(line: tuple[str, str, str]) -> int:
    """Compiling takes as long as all else: large compiled models come later, as do details."""
    variant, precision, model = line
    return (variant not in MAIN) + (precision == "compiled" and model != "MLP")


def _measured(device: str, model: str, precision: str, variant: str, seconds: float) -> Line:
    plain = made(MODELS[model], device, precision)
    twin = made(MODELS[model], device, precision)
    with VARIANTS[variant](twin) as step:
        turns = by_turns(step, plain.step, device, seconds)
        asked, usual = launched(step, device), launched(plain.step, device)
    plain.end()
    twin.end()
    met = ("yes" if turns.wall() <= LIMIT else "NO") if _is_judged(device, variant) else ""
    return Line(
        model, precision, variant, 1e3 * turns.plain_s, turns.wall(), turns.device(), turns.n,
        usual.kernels, _more(asked, usual), asked.copies, met,
    )  # fmt: skip


def _more(asked: Launched, usual: Launched) -> float:
    return asked.kernels - usual.kernels


def _is_judged(device: str, variant: str) -> bool:
    """Small models on a CPU show that it runs, and no more."""
    return device == "cuda" and variant == "default"


def _card(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "a CPU, with small models"


def _save(path: Path | None, **found: Any) -> None:
    if path is not None:
        path.write_text(json.dumps({"torch": torch.__version__, **found}, indent=1), "utf-8")
