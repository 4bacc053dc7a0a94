"""What asking the alert rules takes, on the writer's thread, beside writing the same rows.

A look asks every built-in rule about the rows that have come since the last one, as before each
flush. Both are CPU time, the median of some looks, with all that the rules need recorded at every
step of a healthy run: at 100 and 1,000 modules, and at the root what is of the step as a whole.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from notebook_probe.alerts import RULES, Alert, Rules, Watcher
from notebook_probe.record import ROOT, ModuleRow, RecordWriter, Variable

ROWS, LOOKS = 200, 15
USUAL = {
    "adam_update_rms": 1.0, "attn_entropy_share": 0.6, "attn_max_logit": 5.0,
    "attn_max_logit_head": 1.0, "attn_narrowest_head": 0.0, "bn_mean_tid": 0.1,
    "dead_fraction": 0.1, "effective_rank": 20.0, "effective_rank_share": 0.4,
    "grad_cosine": 0.2, "grad_norm": 0.5, "grad_rms": 1e-3, "nonfinite_fraction": 0.0,
    "range_headroom_bits": 100.0, "silent_input_fraction": 0.1, "update_ratio": 1e-3,
}  # fmt: skip
OF_THE_STEP = {
    "clip_coefficient": 1.0, "data_wait_share": 0.05, "grad_depth_slope": -0.05, "loss": 0.7,
    "loss_spike_score": 0.5,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be chosen here."""


def run(chosen: argparse.Namespace) -> None:
    """Print the CPU time of a look and of the flush after it, per row of each."""
    rules, n = len(RULES), len(USUAL)
    print(f"{rules} rules, {n} series of each module and {len(OF_THE_STEP)} others, {ROWS} rows")
    for n_modules in (100, 1000):
        with tempfile.TemporaryDirectory() as folder:
            look_us, flush_us, n_alerts = _measured(Path(folder) / "a.zarr", n_modules)
        print(
            f"  {n_modules:5} modules: a look {look_us:7.1f} us per row, its flush "
            f"{flush_us:7.1f} us per row, {look_us / flush_us:.2f} of it; {n_alerts} alerts"
        )


def _measured(path: Path, n_modules: int) -> tuple[float, float, int]:
    labels = [f"block{i}" for i in range(n_modules)]
    table = [ModuleRow(label, "Linear", 1, 1, -1) for label in labels]
    writer = RecordWriter(path, title="alerts", modules=table, flush_s=3600.0, ring_bytes=1 << 30)
    stream = writer.stream("every_1")
    stream.extend([ROOT, *labels], [Variable(name) for name in (*USUAL, *OF_THE_STEP)])
    usual = np.full(stream.shape, np.nan, np.float32)
    usual[: len(USUAL), 1:] = np.array([*USUAL.values()])[:, None]
    usual[len(USUAL) :, 0] = [*OF_THE_STEP.values()]
    rng = np.random.default_rng(0)
    found: list[Alert] = []
    watcher = Watcher(writer.source, Rules(), found.append)
    looks, flushes, step = [], [], 0
    spent = _cpu_of_flushes(writer)
    for _ in range(LOOKS):
        for _ in range(ROWS):
            row = usual.copy()
            row[:, 1:] *= rng.lognormal(sigma=0.1, size=row[:, 1:].shape)
            stream.record(step, step, row)
            step += 1
        begun = time.thread_time()
        watcher.look()
        looks.append(time.thread_time() - begun)
        before = spent()
        writer.flush(60.0)
        flushes.append(spent() - before)
    writer.close()
    return 1e6 * float(np.median(looks)) / ROWS, 1e6 * float(np.median(flushes)) / ROWS, len(found)


def _cpu_of_flushes(writer: RecordWriter) -> Callable[[], float]:
    """CPU time of all other threads so far: while this one waits, the writer's."""
    return lambda: time.process_time() - time.thread_time()
