"""Step time with the default probes every step, against none; and what the run says it costs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

import notebook_probe as nbp
from benchmarks.pairs import paired
from benchmarks.workloads import WORKLOADS, Workload

PAIRS = {"MLP": 300, "ResNet-18": 24, "small GPT": 40}


def run() -> None:
    """Print one line per workload: nothing, and the default probes, both against plain."""
    torch.set_num_threads(1)
    print("step time, CPU, ratio to the plain step (quartiles, pairs, plain step)")
    for name, make in WORKLOADS.items():
        print(f"  {name:10} null             {_null(make, PAIRS[name])}")
        print(f"  {name:10} default probes   {_probed(make, PAIRS[name])}")


def _null(make: Callable[[], Workload], n_pairs: int) -> str:
    return str(paired(make().step, make().step, n_pairs))


def _probed(make: Callable[[], Workload], n_pairs: int) -> str:
    watched, plain = make(), make()
    with tempfile.TemporaryDirectory() as folder:
        run = nbp.watch(watched.model, watched.optimizer, store=Path(folder) / "run.zarr")
        for _ in range(5 + n_pairs // 4):
            watched.step()
        told = run.status()  # of steps that follow each other, as in training
        ratio = paired(watched.step, plain.step, n_pairs)
        run.close()
    return f"{ratio}; self-timed {told.cost_percent:.1f} % in {told.n_probes} probes"
