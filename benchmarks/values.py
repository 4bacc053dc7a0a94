"""Do the measured values hold? Those of a step, against float64 by hand from an unwatched twin."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xarray as xr

from benchmarks.oracle import ORACLES, SCALES, Seen, see
from benchmarks.peers.ours import begin
from benchmarks.probe_sets import SETS, Probes, places
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["largest_errors"]

STEPS = 3


def largest_errors(workload: str, probes: str) -> str:
    """Per quantity, the largest relative error over all its modules, in words."""
    recorded, twin = _recorded(WORKLOADS[workload](), SETS[probes]), WORKLOADS[workload]()
    for _ in range(STEPS - 1):
        twin.step()
    seen = see(twin)
    told = []
    for name in (name for names in SETS[probes].values() for name in names):
        errors = [
            _error(name, recorded[name].sel(module=path).to_numpy(), seen[path])
            for path in places(twin.model, SETS[probes], name)
        ]
        told.append(f"{name} {np.nanmax(errors):.0e}")
    return ", ".join(told)


def _error(name: str, got: npt.NDArray[np.float32], seen: Seen) -> float:
    """Largest difference over the largest value; of a histogram, over its fullest bin.

    NaN where there is nothing to compare with.
    """
    want = np.asarray(ORACLES[name](seen))
    if np.array_equal(got, want):  # infinities too
        return 0.0
    scale = SCALES[name](seen) if name in SCALES else np.abs(want).max()
    return float(np.abs(got - want).max() / scale)


def _recorded(workload: Workload, probes: Probes) -> xr.Dataset:
    """The last step's record."""
    with tempfile.TemporaryDirectory() as folder:
        with begin(workload, probes, Path(folder)) as run:
            for _ in range(STEPS):
                workload.step()
        return run.data.sel(step=STEPS - 1).load()
