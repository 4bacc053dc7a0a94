"""``kill -9`` of a real writer while plain xarray reads: nothing torn, nothing published lost."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import xarray as xr

from notebook_probe.record import open_record
from tests.record.build import new_writer

WRITER = """
import sys, time
from pathlib import Path
from notebook_probe.record import RecordWriter
from tests.record.build import BINS, COUNTS, GRAD, MODULES, WEIGHT, row, vectors
writer = RecordWriter(Path(sys.argv[1]), title="run", modules=MODULES, flush_s=0.01)
dense, bins = writer.stream("every_1"), writer.stream("every_1", axis=BINS)
dense.extend(["m0"], [GRAD])
bins.extend(["m0"], [COUNTS])
sparse = writer.stream("every_7")  # last: whoever finds it finds the others
sparse.extend(["m0"], [WEIGHT])
first = writer.stream("every_1").last_step + 1
step = first
while True:
    if step % 500 == 0:
        dense.extend([f"m{step // 500}"], [WEIGHT] if step > 1000 else [])
        bins.extend([f"m{step // 500}"])
    if step > bins.last_step:
        bins.record(step, step, vectors(bins, step))
    dense.record(step, step, row(dense, step))
    if step % 7 == 0 and step > sparse.last_step:
        sparse.record(step, step, row(sparse, step))
    step += 1
    if step % 20 == 0:
        time.sleep(0.001)  # a training step now and then
"""


def rows_seen(folder: Path) -> int:
    """Rows of the dense stream, every value of all streams checked."""
    for path, every in (("scalars/every_7", 7), ("hist/every_1", 1), ("scalars/every_1", 1)):
        data = xr.open_dataset(folder, engine="zarr", group=path, cache=False).load()
        steps = data.step.values
        if every == 1:
            assert np.array_equal(steps, np.arange(len(steps)))
        assert (np.diff(steps) % every == 0).all()
        assert np.array_equal(data.time.values.astype("datetime64[ms]").astype(int), steps)
        assert len(set(data.module.values.tolist())) == data.sizes["module"]
        for place, quantity in enumerate(data.attrs["quantities"]):
            values = data[quantity].values.reshape(len(steps), data.sizes["module"], -1)
            expected = 1000 * place + 100 * np.arange(values.shape[1]) + steps[:, None]
            expected = expected[..., None] + np.arange(values.shape[2]) / 1024
            assert (np.isnan(values) | (values == expected.astype(np.float32))).all()
            assert place or not np.isnan(values[:, 0]).any()
    return len(steps)


def test_a_killed_writer_leaves_a_readable_record_that_can_be_continued(tmp_path: Path) -> None:
    folder = tmp_path / "a.zarr"
    moments = random.Random(7)
    new_writer(folder).close()
    n_before = 0
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)])
        try:
            n_rows, n_more = n_before, moments.randrange(200, 1500)
            while n_rows < n_before + n_more:
                assert writer.poll() is None
                if "every_7" in open_record(folder).streams:
                    n_rows = rows_seen(folder)
        finally:
            writer.kill()
            writer.wait(60)
        n_after = rows_seen(folder)
        assert n_after >= n_rows  # what was once published stays
        record = open_record(folder)
        assert not record.finished
        assert record.streams["every_1"].n_rows == n_after
        n_before = n_after
    with new_writer(folder) as last:
        assert last.stream("every_1").last_step == n_before - 1
    assert rows_seen(folder) == n_before
