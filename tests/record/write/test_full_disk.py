"""A file system of its own that fills up: rows wait until there is room again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
"""A namespace in which anybody may mount; it ends with its process."""
PROGRAM = """
import subprocess, sys
from pathlib import Path
import numpy as np
from notebook_probe.errors import RecordWriteError
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from tests.record.build import GRAD, MODULES

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
HotChunks.sizes = ChunkSizes(2**14, 2**12)  # chunks of 64 kB: the disk holds about ten
ballast = disk / "ballast"
ballast.write_bytes(bytes(400_000))
writer = RecordWriter(disk / "a.zarr", title="run", modules=MODULES, flush_s=3600)
stream = writer.stream("every_1")
stream.extend(["conv1"], [GRAD])
noise = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)


def record(n):
    for step in range(stream.n_rows, stream.n_rows + n):
        assert stream.record(step, step, noise[step].reshape(1, 1))


def check(n):
    series = open_record(disk / "a.zarr").series("conv1", "grad_norm")
    assert np.array_equal(series.values, noise[:n])
    assert series.step.values.tolist() == list(range(n))


def wait_for_fault(words):
    while writer.flush(60):
        record(1000)
    assert words in writer.last_error, writer.last_error
    published = writer.published_rows("every_1")
    assert not (disk / "a.zarr/.partial").exists()
    check(published)  # also while nothing can be written
    record(1000)
    assert not writer.flush(60)
    assert writer.published_rows("every_1") == published
    assert writer.source.series("conv1", "grad_norm").size == stream.n_rows


wait_for_fault("No space left")
ballast.unlink()
assert writer.flush(60), writer.last_error
check(stream.n_rows)
record(10)
writer.close()
assert writer.dropped_rows == 0, writer.last_error
n_rows = stream.n_rows
check(n_rows)

writer = RecordWriter(disk / "a.zarr", title="run", modules=MODULES, flush_s=3600)
stream = writer.stream("every_1")
ballast.write_bytes(bytes(100_000))
try:
    while True:  # to the last byte
        with ballast.open("ab", buffering=0) as file:
            file.write(bytes(512))
except OSError:
    pass
record(1000)
try:
    writer.close()
except RecordWriteError as error:
    assert "1000 rows could not be written: OSError: [Errno 28] No space left" in str(error)
    assert f"are kept in {Path.home()}" in str(error), error
else:
    raise AssertionError("nothing was said")
assert writer.dropped_rows == 1000
ballast.unlink()
RecordWriter(disk / "a.zarr", title="run", modules=MODULES).close()
check(n_rows + 1000)
print("all is there", flush=True)
"""


def can_mount() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="no mounting without privileges here")
def test_rows_wait_on_a_full_disk_and_none_is_lost(tmp_path: Path) -> None:
    program = [*ALONE, sys.executable, "-c", PROGRAM, str(tmp_path)]
    home = {**os.environ, "HOME": str(tmp_path.with_name(f"{tmp_path.name}-home"))}
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=home)
    assert done.stdout == "all is there\n", done.stderr
