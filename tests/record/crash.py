"""Writers that are killed, and a reader that all the while looks at every value."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.record import RecordWriter
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.write import flusher
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from tests.record.build import BINS, COUNTS, GRAD, MODULES, WEIGHT, row, vectors

__all__ = ["Life", "Reader", "check"]

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])
SIZES = ChunkSizes(2**8, 100)
"""Small enough for many chunks to be filled and compressed in every life, and no rest between
flushes: as many moments as possible at which something is half done."""
EVERY = {"scalars/every_7": 7, "hist/every_1": 1, "scalars/every_1": 1}


def train(folder: Path, resume: int | None, published: Any) -> None:
    """Record until killed; ``published`` follows what the writer says of the densest stream."""
    HotChunks.sizes, flusher.REST = SIZES, 1
    writer = RecordWriter(folder, title="run", modules=MODULES, flush_s=0.01, resume=resume)
    dense, sparse = writer.stream("every_1"), writer.stream("every_7")
    bins = writer.stream("every_1", axis=BINS)
    for stream, quantity in ((dense, GRAD), (sparse, WEIGHT), (bins, COUNTS)):
        stream.extend(["m0"], [quantity])
    step = dense.last_step + 1
    while True:
        if step % 200 == 0:
            dense.extend([f"m{step // 200}"], [WEIGHT] if step > 500 else [])
            bins.extend([f"m{step // 200}"])
        if step > bins.last_step:
            bins.record(step, step, vectors(bins, step))
        dense.record(step, step, row(dense, step))
        if step % 7 == 0 and step > sparse.last_step:
            sparse.record(step, step, row(sparse, step))
        step += 1
        published.value = writer.published_rows("every_1")
        time.sleep(0.001)  # so that the reader, who looks at everything, keeps up


class Life:
    """One writer, from its start to its ``kill -9``."""

    def __init__(self, folder: Path, resume: int | None = None) -> None:
        self.published = CONTEXT.Value("q", 0)
        arguments = (folder, resume, self.published)
        self._process = CONTEXT.Process(target=train, args=arguments)
        self._process.start()

    def wait_for_rows(self, n: int) -> None:
        """Until more than ``n`` rows are published."""
        while self.published.value <= n:
            assert self._process.is_alive()
            time.sleep(random.random() / 500)

    def kill(self) -> int:
        """Kill it; returns how many rows it knew to be published."""
        self._process.kill()
        self._process.join(60)
        return int(self.published.value)


def read_on(folder: Path, ended: Any, n_reads: Any, cuts: Any, sure: Any) -> None:
    """Look at everything, again and again, in both ways that xarray opens a record."""
    while not ended.is_set():
        n_cuts = cuts.value
        tree = xr.open_datatree(folder, engine="zarr", cache=False)
        for path in EVERY:
            group = xr.open_zarr(folder, group=path)
            for data in (group.load(), tree[path].to_dataset().load()):
                undisturbed = cuts.value == n_cuts and n_cuts % 2 == 0
                check(path, data if undisturbed else data.sel(step=slice(sure.value - 1)))
        n_reads.value += 1


class Reader:
    """A process that reads until it is told to stop, or finds something wrong."""

    def __init__(self, folder: Path) -> None:
        self._ended = CONTEXT.Event()
        self._n_reads, self._cuts, self._sure = (CONTEXT.Value("q", 0) for _ in range(3))
        arguments = (folder, self._ended, self._n_reads, self._cuts, self._sure)
        self._process: ForkServerProcess = CONTEXT.Process(target=read_on, args=arguments)
        self._process.start()

    def expect_cut(self, step: int) -> None:
        """From now on only rows before ``step`` are sure to stay."""
        self._sure.value = step
        self._cuts.value += 1

    def cut_is_done(self) -> None:
        self._cuts.value += 1

    def wait_for_reads(self, n: int) -> None:
        """Until ``n`` more have been made."""
        wanted = self._n_reads.value + n
        while self._n_reads.value < wanted:
            assert self._process.is_alive()
            time.sleep(0.01)

    def stop(self) -> None:
        self._ended.set()
        self._process.join(60)
        assert self._process.exitcode == 0


def check(path: str, data: xr.Dataset) -> None:
    """Every value tells where it belongs."""
    steps = data.step.values
    assert np.array_equal(steps, EVERY[path] * np.arange(len(steps)))
    assert np.array_equal(data.time.values.astype("datetime64[ms]").astype(int), steps)
    assert len(set(data.module.values.tolist())) == data.sizes["module"]
    for place, quantity in enumerate(data.attrs["quantities"]):
        values = data[quantity].values.reshape(len(steps), data.sizes["module"], -1)
        expected = 1000 * place + 100 * np.arange(values.shape[1]) + steps[:, None]
        expected = expected[..., None] + np.arange(values.shape[2]) / 1024
        assert (np.isnan(values) | (values == expected.astype(np.float32))).all()
        assert place or not np.isnan(values[:, 0]).any()
