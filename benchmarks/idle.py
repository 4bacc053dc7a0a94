"""What a probe costs that measures nothing: attached but not due, and detached again.

Training steps on a chain of modules that do nothing, against a bare twin in pairs; the difference
is shared out over the modules' calls. What a step takes whatever its length (asking schedules,
closing the row) is in it too, and small beside that many calls.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import notebook_probe as nbp
from benchmarks.pairs import Pairs, alone, paired
from benchmarks.peers.ours import begin
from benchmarks.table import Table
from benchmarks.workloads import Workload

__all__ = ["add_arguments", "run"]

N_CALLS = 300
LIMIT_US = 1.0
NEVER = nbp.Steps({10**9})
QUANTITIES = ("weight_norm", "input_norm", "output_norm", "output_grad_norm")
COLUMNS = {"probe": 25, "us per call": 11, "bare us": 7, "n": 5, "target": 6, "met": 3}


class _Same(nn.Module):
    """Does nothing, so that little hides what a hook costs; its weight is there to be watched."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return x


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=10.0, help="for each line (default 10)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per state of the probes."""
    torch.set_num_threads(1)
    print(f"idle probes on a chain of {N_CALLS} modules, CPU\n")
    table = Table(COLUMNS)
    _print(table, "nothing", _bare(chosen.seconds))
    for quantity in QUANTITIES:
        _print(table, f"{quantity}, not due", _not_due(quantity, chosen.seconds))
    _print(table, "all of them, detached", _detached(chosen.seconds))


def _chain() -> Workload:
    model = nn.Sequential(nn.Linear(1, 1), *(_Same() for _ in range(N_CALLS)))
    inputs = torch.ones(1, 1)
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.0)
    return Workload(model, optimizer, inputs, inputs, lambda outputs, targets: outputs)


def _bare(seconds: float) -> Pairs:
    return _pairs(_chain(), seconds)


def _not_due(quantity: str, seconds: float) -> Pairs:
    watched = _chain()
    with tempfile.TemporaryDirectory() as folder, begin(watched, None, Path(folder)) as run:
        run.attach(_Same, quantity, NEVER)
        return _pairs(watched, seconds)


def _detached(seconds: float) -> Pairs:
    watched = _chain()
    with tempfile.TemporaryDirectory() as folder, begin(watched, None, Path(folder)) as run:
        handle = run.attach(_Same, QUANTITIES)
        alone(watched.step, seconds=0.1)
        handle.remove()
        alone(watched.step, seconds=0.1)
        assert not _hooks(watched.model), "hooks are left on a module"
        return _pairs(watched, seconds)


def _hooks(model: nn.Module) -> list[object]:
    """The hooks on the chain's modules; the root has its own as long as it is watched."""
    inside = [module for module in model.modules() if isinstance(module, _Same)]
    return [h for m in inside for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())]


def _pairs(watched: Workload, seconds: float) -> Pairs:
    bare = _chain()
    alone(bare.step, seconds=0.1)
    alone(watched.step, seconds=0.1)
    return paired(watched.step, bare.step, seconds=seconds, at_most=100_000)


def _print(table: Table, probe: str, pairs: Pairs) -> None:
    us, bare_us = 1e6 * pairs.difference_s() / N_CALLS, 1e6 * pairs.plain_s / N_CALLS
    judged = [f"<= {LIMIT_US}", "yes" if us <= LIMIT_US else "NO"] if probe != "nothing" else []
    table.row(probe, f"{us:.2f}", f"{bare_us:.2f}", str(pairs.n), *judged)
