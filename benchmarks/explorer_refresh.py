"""What one refresh of the Explorer takes: 10 series of 100,000 points, a heat map of 100 modules.

Two figures, each beside matplotlib redrawing the same thinned series into a PNG (``set_data``):
the CPU time of the refreshing thread, and the training time a refresh takes away, from slices of
a training loop with and without a thread that refreshes four times a second.
"""

from __future__ import annotations

import argparse
import io
import math
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.workloads import mlp
from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.draw.view import Painter
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import ModuleRow, Source, Variable
from notebook_probe.record.write.writer import RecordWriter

N_MODULES, N_ROWS, N_SERIES, N_PIXELS = 100, 100_000, 10, 700
PERIOD_S, STEPS, PAIRS = 0.25, 60, 40
NAMES = [f"block{i}.linear" for i in range(N_MODULES)]
SELECTION = PanelSelection(home="grad_norm").with_series(
    *((m, "grad_norm") for m in NAMES[:N_SERIES])
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be chosen here."""


def run(chosen: argparse.Namespace) -> None:
    """Print the CPU time per refresh and the training time it takes."""
    torch.set_num_threads(1)
    print(f"refresh of {N_SERIES} x {N_ROWS:,} points and {N_MODULES} x {N_ROWS:,} cells")
    with tempfile.TemporaryDirectory() as folder:
        writer = _recorded(Path(folder) / "long.zarr")
        ours, theirs = _explorer(writer), _matplotlib(writer.source)
        for name, refresh in (("Explorer", ours), ("matplotlib", theirs)):
            refresh()
            cpu_ms = 1e3 * float(np.median([_cpu_s(refresh) for _ in range(20)]))
            taken = _taken_ms(refresh)
            print(f"  {name:10} {cpu_ms:6.1f} ms CPU; takes {taken} ms of training")
        writer.close()


def _recorded(path: Path) -> RecordWriter:
    table = [ModuleRow(name, "Linear", 10, 10, -1 if i == 0 else 0) for i, name in enumerate(NAMES)]
    writer = RecordWriter(path, title="long", modules=table, ring_bytes=128 << 20)
    stream = writer.stream("every_1")
    stream.extend(NAMES, [Variable("grad_norm")])
    noise = np.random.default_rng(0).lognormal(size=(N_ROWS, 1, N_MODULES)).astype(np.float32)
    for step in range(N_ROWS):
        stream.record(step, step, noise[step])
    writer.flush(60.0)
    return writer


def _explorer(writer: RecordWriter) -> Callable[[], None]:
    """Both frames of the panel, after one more row, as while training."""
    stream, views = writer.stream("every_1"), _views()
    row = np.full((1, N_MODULES), 0.5, np.float32)

    def refresh() -> None:
        stream.record(stream.last_step + 1, 0, row)
        for view in views:
            view.frame(writer.source, SELECTION, N_PIXELS)

    return refresh


def _views() -> tuple[Painter, Painter]:
    return Lines(), Heat()


def _matplotlib(source: Source) -> Callable[[], None]:
    """The ten thinned lines alone, drawn by Agg into a PNG."""
    figure = Figure(figsize=(7, 3.5), dpi=100)
    axes = figure.subplots()
    axes.set_yscale("log")
    drawn = [axes.plot([1, 2], [1, 2])[0] for _ in range(N_SERIES)]
    stream = source.streams["every_1"]
    columns = stream.values("grad_norm", modules=NAMES[:N_SERIES])
    stride = math.ceil(len(columns) / 1400)

    def refresh() -> None:
        for i, line in enumerate(drawn):
            line.set_data(np.arange(0, len(columns), stride), columns[::stride, i])
        axes.relim()
        axes.autoscale_view()
        figure.savefig(io.BytesIO(), format="png")

    return refresh


def _cpu_s(refresh: Callable[[], None]) -> float:
    begun = time.thread_time()
    refresh()
    return time.thread_time() - begun


def _taken_ms(refresh: Callable[[], None]) -> str:
    """Median and quartiles of (slice with refreshes - slice without) / refreshes."""
    step = mlp().step
    taken = []
    for i in range(PAIRS):
        slices = {}
        for refreshing in (True, False) if i % 2 else (False, True):
            slices[refreshing] = _slice(step, refresh if refreshing else None)
        (with_s, n), (without_s, _) = slices[True], slices[False]
        taken.append(1e3 * (with_s - without_s) / max(n, 1))
    low, middle, high = np.quantile(taken, [0.25, 0.5, 0.75])
    return f"{middle:.1f} ({low:.1f} to {high:.1f}, n = {PAIRS})"


def _slice(step: Callable[[], None], refresh: Callable[[], None] | None) -> tuple[float, int]:
    """Wall time of some steps beside a refreshing thread, and how often that refreshed."""
    ended, counted = threading.Event(), []

    def go_on() -> None:
        while refresh is not None and not ended.is_set():
            refresh()
            counted.append(1)
            ended.wait(PERIOD_S)

    thread = threading.Thread(target=go_on)
    begun = time.perf_counter()
    thread.start()
    for _ in range(STEPS):
        step()
    wall_s = time.perf_counter() - begun
    ended.set()
    thread.join()
    return wall_s, len(counted)
