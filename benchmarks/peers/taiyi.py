"""Taiyi, github.com/DLCV-BUAA/Taiyi; it keeps its values in memory and writes nothing.

It is on no registry: the environment variable NOTEBOOK_PROBE_TAIYI names its checkout.
"""

from __future__ import annotations

import os
import sys
import warnings
from itertools import count
from pathlib import Path

from benchmarks.peers.tool import Absent, Watched, installed, knows
from benchmarks.probe_sets import Probes, places
from benchmarks.workloads import Workload

__all__ = ["watch"]

CHECKOUT = "NOTEBOOK_PROBE_TAIYI"

ITS_NAMES = {
    "weight_norm": "WeightNorm",
    "grad_norm": "WeightGradNorm",
    "input_mean": "InputMean",
    "input_norm": "InputSndNorm",
    "output_grad_norm": "OutputGradSndNorm",
    "input_cov_max_eig": "InputCovMaxEig",
    "input_cov_stable_rank": "InputCovStableRank",
    "input_cov_condition": "InputCovCondition",
}


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    checkout = os.environ.get(CHECKOUT)
    if not checkout:
        raise Absent(f"{CHECKOUT} names no checkout")
    knows(probes, ITS_NAMES)
    if checkout not in sys.path:
        sys.path.append(checkout)
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # at a first layer, rightly
    config: dict[str, list[str]] = {}
    for quantity, name in ITS_NAMES.items():
        for path in places(workload.model, probes, quantity):
            config.setdefault(path, []).append(name)
    monitor = installed("Taiyi.taiyi.monitor").Monitor(workload.model, config)
    steps = count()
    return Watched(lambda: workload.step(lambda: monitor.track(next(steps))))
