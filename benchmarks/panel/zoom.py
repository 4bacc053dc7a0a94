"""How long the frames of a zoom take: 100 series of a million steps, out of a stored record."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import notebook_probe as nbp
from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.draw.view import Painter
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import ModuleRow, Variable
from notebook_probe.record.write.writer import RecordWriter

N_SERIES, N_ROWS, SLAB, N_PIXELS = 100, 1_000_000, 10_000, 740
NAMES = [f"layer{k}" for k in range(N_SERIES)]
WINDOWS = [(3e5, 6e5), (4e5, 5e5), (4.2e5, 4.4e5), (4.3e5, 4.31e5), (1e5, 9e5), None]
SELECTION = PanelSelection(home="grad_norm").with_series(*((name, "grad_norm") for name in NAMES))


def zoom() -> None:
    """The first frame, then one for each window, with and without averages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.zarr"
        _record(path)
        for smooth in (0.0, 0.9):
            lines, heat, run = Lines(), Heat(), nbp.open_run(path)
            chosen = replace(SELECTION, smooth=smooth)
            first = [_taken_ms(one, run, chosen) for one in (lines, heat)]
            while lines.frame(run, chosen, N_PIXELS)[0]["averaged"] < 1.0:
                pass
            print(f"  smooth {smooth}: first frame of lines and heat map {_words(first)}")
            for window in WINDOWS:
                zoomed = replace(SELECTION, smooth=smooth, window=window)
                taken = [_taken_ms(one, run, zoomed) for one in (lines, heat)]
                print(f"    window {window}: {_words(taken)}")


def _record(path: Path) -> None:
    table = [ModuleRow(name, "Linear", 10, 10, -1 if k == 0 else 0) for k, name in enumerate(NAMES)]
    writer = RecordWriter(path, title="long", modules=table, ring_bytes=128 << 20)
    stream = writer.stream("every_1")
    stream.extend(NAMES, [Variable("grad_norm")])
    random = np.random.default_rng(0)
    for first in range(0, N_ROWS, SLAB):
        noise = random.lognormal(size=(SLAB, 1, N_SERIES)).astype(np.float32)
        for row in range(SLAB):
            stream.record(first + row, first + row, noise[row])
        writer.flush(60.0)
    writer.close()


def _taken_ms(view: Painter, run: nbp.OpenedRun, selection: PanelSelection) -> tuple[float, float]:
    """Wall and CPU time of one frame."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    view.frame(run, selection, N_PIXELS)
    return 1e3 * (time.perf_counter() - wall_s), 1e3 * (time.process_time() - cpu_s)


def _words(taken: list[tuple[float, float]]) -> str:
    return " and ".join(f"{wall:.0f} ms ({cpu:.0f} of CPU)" for wall, cpu in taken)
