"""What a probe costs that measures nothing: attached but not due, and detached again.

Training steps on a chain of modules that do nothing, against a bare twin in pairs; the difference
is shared out over the modules' calls. What a step takes whatever its length (asking schedules,
closing the row) is in it too, and small beside that many calls. That is the second table: whole
steps of a small network and of a deep one, in which nothing is due, or only the time of the step,
with the calls of our functions in it. The third has due steps of the deep one, by layer.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import notebook_probe as nbp
from benchmarks.calls import by_room, calls_of
from benchmarks.pairs import Pairs, alone, paired
from benchmarks.peers.ours import begin
from benchmarks.table import Table
from benchmarks.workloads import Workload, twins
from notebook_probe.run.attach.presets import presets

__all__ = ["add_arguments", "run"]

N_CALLS = 300
LIMIT_US = 1.0
NEVER = nbp.Steps({10**9})
QUANTITIES = ("weight_norm", "input_norm", "output_norm", "output_grad_norm")
STEP_LIMIT_US, CALLS_LIMIT, LAYER_LIMIT_US = {"idle": 15.0, "step": 20.0}, 12, 30.0
N_COUNTED = 16
"""Steps of which the calls are counted."""
LAYERS = {"3 layers": 3, "49 layers": 49}
STEPS = "nothing", "not due", "step"
STEP_COLUMNS = {"step": 25, "added us": 9, "bare us": 7, "calls": 6, "n": 5, "target": 13, "met": 3}
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
    print("\nwhole steps, width 64, AdamW: nothing attached, probes not due, and the step\n")
    table = Table(STEP_COLUMNS)
    for name, n_layers in LAYERS.items():
        for what in STEPS:
            _print_step(table, f"{name}, {what}", n_layers, what, chosen.seconds)
    print("\nwhole steps of 49 layers with all default probes due, by layer and by room\n")
    _print_due(chosen.seconds)


def _layers(n_layers: int) -> Workload:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(n_layers)))
    inputs = torch.randn(32, 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return Workload(model, optimizer, inputs, inputs, nn.functional.mse_loss)


def _measured(n_layers: int, what: str, seconds: float) -> tuple[Pairs, dict[str, float]]:
    """Pairs of steps, and the calls in one by room."""
    watched, bare = twins(_layers, n_layers)
    with tempfile.TemporaryDirectory() as folder:
        preset = {"due": "default", "step": "step"}.get(what)
        probes = None if preset is None else presets[preset]
        with begin(watched, probes, Path(folder)) as run:
            if what == "not due":
                run.attach(nn.Linear, QUANTITIES, NEVER)
            for step in (watched.step, bare.step):
                alone(step, seconds=0.2, at_least=40)
            rooms = by_room(calls_of(watched.step, N_COUNTED), N_COUNTED)
            pairs = paired(watched.step, bare.step, seconds=seconds, at_most=100_000)
    return pairs, rooms


def _print_step(table: Table, name: str, n_layers: int, what: str, seconds: float) -> None:
    pairs, rooms = _measured(n_layers, what, seconds)
    us, n_calls = 1e6 * pairs.difference_s(), sum(rooms.values())
    limit_us = STEP_LIMIT_US["step" if what == "step" else "idle"]
    is_met = us <= limit_us and (what == "step" or n_calls <= CALLS_LIMIT)
    target = f"<= {limit_us:g} us" + ("" if what == "step" else f", {CALLS_LIMIT}")
    figures = f"{us:.1f}", f"{1e6 * pairs.plain_s:.0f}", f"{n_calls:.0f}", str(pairs.n), target
    table.row(name, *figures, "yes" if is_met else "NO")


def _print_due(seconds: float) -> None:
    n_layers = LAYERS["49 layers"]
    pairs, rooms = _measured(n_layers, "due", seconds)
    us = 1e6 * pairs.difference_s() / n_layers
    met = "yes" if us <= LAYER_LIMIT_US else "NO"
    print(f"{us:.1f} us a layer (<= {LAYER_LIMIT_US:g}: {met}), {sum(rooms.values()):.0f} calls")
    for room, n_calls in rooms.items():
        if n_calls >= n_layers:
            print(f"{n_calls / n_layers:7.1f} a layer  {room}")


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
