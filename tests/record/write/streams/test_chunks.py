"""Both ways to write chunks, held against an array in memory through every turn of events."""

from __future__ import annotations

import json
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numcodecs import Blosc

from notebook_probe.record.format.array_specs import ArraySpec
from notebook_probe.record.format.chunks import Array, Chunks
from notebook_probe.record.format.codec import (
    HEADER_BYTES,
    decode,
    encode,
    is_stored,
    stored_header,
)
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.store.files import Files
from notebook_probe.record.write.streams.descriptors import Descriptors
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from notebook_probe.record.write.streams.plain_chunks import PlainChunks

NUMBERS = ArraySpec("float32", ("step", "module"), (5, 2), {})
VECTORS = ArraySpec("float32", ("step", "module", "bin"), (4, 2, 3), {})
STEPS = ArraySpec("int64", ("step",), (7,), {})
SPECS = {"q": NUMBERS, "v": VECTORS, "step": STEPS}
MAKERS: dict[str, Callable[[Files], Chunks]] = {"plain": PlainChunks, "hot": HotChunks}


def on_disk(folder: Path, path: str, shape: tuple[int, ...]) -> Array:
    """What zarr reads; the metadata is written here, since chunks know of none."""
    (folder / path).mkdir(exist_ok=True)
    (folder / path / "zarr.json").write_text(json.dumps(SPECS[path].metadata(shape)))
    return np.asarray(zarr.open_array(folder / path, mode="r")[:])


class ChunkMachine(RuleBasedStateMachine):
    """Rows are appended, written again, cut; columns come; the writer closes, dies, is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.folder = Path(self.home.name)
        self.expected: dict[str, Array] = {
            "q": np.empty((0, 1), np.float32),
            "v": np.empty((0, 1, 3), np.float32),
            "step": np.empty(0, np.int64),
        }
        self.count = 0
        self.chunks: Chunks
        self.reopen("hot")

    def teardown(self) -> None:
        self.chunks.close()
        self.home.cleanup()

    def rows(self, path: str, n: int, *, empty: bool) -> Array:
        """Rows whose every value is another; some of floats are NaN of either kind."""
        shape = (n, *self.expected[path].shape[1:])
        size = int(np.prod(shape))
        values = np.arange(self.count, self.count + size).astype(SPECS[path].dtype).reshape(shape)
        self.count += size
        if path != "step":
            values[values % 5 == 0] = NOT_MEASURED
            values[values % 7 == 0] = MEASURED_NAN
            if empty:
                values[:] = NOT_MEASURED
        return values

    @rule(n=st.integers(1, 13), empty=st.booleans(), again=st.booleans())
    def append(self, n: int, empty: bool, again: bool) -> None:
        """Write rows, as a flush that failed after them would have it, twice."""
        for path, spec in SPECS.items():
            before = self.expected[path]
            for values in [self.rows(path, n, empty=empty) for _ in range(1 + again)]:
                self.chunks.write_rows(path, spec, len(before), values)
                self.expected[path] = np.concatenate([before, values])

    @rule(n=st.integers(1, 3))
    def widen(self, n: int) -> None:
        for path in ("q", "v"):
            old = self.expected[path]
            more = np.full((len(old), n, *old.shape[2:]), NOT_MEASURED)
            self.expected[path] = np.concatenate([old, more], axis=1)

    @rule(tails=st.booleans())
    def seal(self, tails: bool) -> None:
        self.chunks.seal(tails=tails)

    @rule()
    def finish(self) -> None:
        self.chunks.finish()

    @rule(part=st.floats(0, 1))
    def cut(self, part: float) -> None:
        n = int(part * len(self.expected["step"]))
        for path, spec in SPECS.items():
            self.expected[path] = self.expected[path][:n]
            self.chunks.truncate(path, spec, self.expected[path].shape)

    @rule(kind=st.sampled_from(sorted(MAKERS)), lost=st.integers(0, 3))
    def reopen(self, kind: str, lost: int = 0) -> None:
        """Go on with another writer, after the first died with ``lost`` rows unpublished."""
        if lost:
            for path, spec in SPECS.items():
                rows = self.rows(path, lost, empty=False)
                self.chunks.write_rows(path, spec, len(self.expected[path]), rows)
        if hasattr(self, "chunks"):
            self.chunks.close()
        self.files = Files(self.folder)
        self.chunks = MAKERS[kind](self.files)
        for path, spec in SPECS.items():
            self.chunks.truncate(path, spec, self.expected[path].shape)

    @invariant()
    def zarr_reads_what_was_written(self) -> None:
        for path, expected in self.expected.items():
            found = on_disk(self.folder, path, expected.shape)
            assert found.tobytes() == expected.tobytes()


ChunkMachine.TestCase.settings = settings(
    deadline=None,
    derandomize=True,
    max_examples=20,
    stateful_step_count=12,
    suppress_health_check=[HealthCheck.too_slow],
)
test_chunks_hold_what_was_written = ChunkMachine.TestCase


def chunk_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("c/*/*")
    }


def test_a_chunk_that_begins_at_the_end_is_written_once_as_if_it_were_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ArraySpec("float32", ("step", "module"), (500, 2), {})
    rows = np.arange(600.0, dtype=np.float32).reshape(300, 2)
    sealed, finished = HotChunks(Files(tmp_path / "a")), HotChunks(Files(tmp_path / "b"))
    (tmp_path / "a").mkdir()
    sealed.write_rows("q", spec, 0, rows)
    sealed.seal(tails=True)
    (tmp_path / "b").mkdir()
    written, write = list[str](), Files.write_sparse

    def note(files: Files, key: str, content: bytes, size: int) -> None:
        written.append(key)
        write(files, key, content, size)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "write_sparse", note)
        finished.finish()
        finished.write_rows("q", spec, 0, rows)
        finished.seal(tails=True)
    assert written == ["q/c/0/0"]
    assert chunk_files(tmp_path / "b") == chunk_files(tmp_path / "a")
    for chunks in (sealed, finished):
        chunks.close()


def test_a_tail_is_a_stored_frame_until_it_is_full(tmp_path: Path) -> None:
    chunks = HotChunks(Files(tmp_path))
    spec = ArraySpec("float32", ("step", "module"), (500, 2), {})
    chunks.write_rows("q", spec, 0, np.ones((700, 2), np.float32))

    def stored() -> list[str]:
        return sorted(key for key, frame in chunk_files(tmp_path).items() if is_stored(frame))

    assert stored() == ["q/c/0/0", "q/c/1/0"]
    chunks.seal()
    assert stored() == ["q/c/1/0"]
    chunks.seal(tails=True)
    assert stored() == []
    assert chunk_files(tmp_path)["q/c/0/0"] == encode(np.ones((500, 2), np.float32))
    chunks.close()


def test_values_that_cannot_be_compressed_are_finished_as_they_are(tmp_path: Path) -> None:
    chunks = HotChunks(Files(tmp_path))
    noise = np.random.default_rng(0).integers(0, 2**32, (5, 2), np.uint32).view(np.float32)
    chunks.write_rows("q", NUMBERS, 0, noise)
    before = chunk_files(tmp_path)["q/c/0/0"]
    chunks.seal()
    after = chunk_files(tmp_path)["q/c/0/0"]
    assert is_stored(before)
    assert not is_stored(after), "a stored frame has no room for a checksum"
    assert noise.tobytes() in after
    assert bytes(Blosc().decode(after)) == bytes(Blosc().decode(before)) == noise.tobytes()
    chunks.close()


def test_where_nothing_was_measured_no_file_is_made(tmp_path: Path) -> None:
    for maker in MAKERS.values():
        chunks = maker(Files(tmp_path))
        values = np.full((3, 4), NOT_MEASURED)
        values[2, 0] = MEASURED_NAN
        chunks.write_rows("q", NUMBERS, 0, values)
        assert list(chunk_files(tmp_path)) == ["q/c/0/0"]
        chunks.close()


def test_a_header_makes_raw_values_a_frame() -> None:
    values = np.random.default_rng(0).random((64, 16)).astype(np.float32)
    frame = stored_header("float32", (64, 16)) + values.tobytes()
    assert is_stored(frame)
    assert np.array_equal(decode(frame, "float32", (64, 16)), values)
    assert not is_stored(encode(np.zeros((64, 16), np.float32)))


def test_a_tail_takes_the_room_of_its_rows(tmp_path: Path) -> None:
    files = Files(tmp_path)
    chunks = HotChunks(files)
    spec = ArraySpec("float32", ("step", "module"), (2**16, 4), {})
    chunks.write_rows("q", spec, 0, np.ones((10, 4), np.float32))
    stat = (tmp_path / "q/c/0/0").stat()
    assert files.nbytes == HEADER_BYTES + 10 * 4 * 4
    assert stat.st_size == HEADER_BYTES + 2**20
    assert stat.st_blocks * 512 <= 2**16
    chunks.close()


def test_few_files_stay_open_and_none_in_a_forked_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of those that the process may have."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (15, 15))
    open_files = Descriptors(tmp_path)
    keys = [f"file{i}" for i in range(5)]
    for key in keys:
        (tmp_path / key).write_bytes(b"....")
        open_files.write_at(key, 1, memoryview(key[-2:].encode()))

    def n_open() -> int:
        links = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
        return sum(link.startswith(str(tmp_path.resolve())) for link in links)

    assert n_open() == 3
    child = os.fork()
    if child == 0:
        os._exit(n_open())
    assert os.waitpid(child, 0)[1] == 0
    assert n_open() == 3
    assert [(tmp_path / key).read_bytes() for key in keys] == [b".e%d." % i for i in range(5)]
    open_files.close()
    assert n_open() == 0


def test_a_short_write_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, view, at: whole(fd, view[:3], at))
    chunks = HotChunks(Files(tmp_path))
    values = np.arange(20, dtype=np.float32).reshape(10, 2)
    chunks.write_rows("q", NUMBERS, 0, values)
    assert np.array_equal(on_disk(tmp_path, "q", (10, 2)), values)
    chunks.close()


def test_full_chunks_are_sealed_a_few_at_a_time_and_all_in_the_end(tmp_path: Path) -> None:
    chunks = HotChunks(Files(tmp_path))
    spec = ArraySpec("float32", ("step", "module"), (500, 2), {})

    def n_stored() -> int:
        return sum(map(is_stored, chunk_files(tmp_path).values()))

    chunks.write_rows("q", spec, 0, np.ones((500, 80), np.float32))
    left = [n_stored()]
    while left[-1]:
        chunks.seal()
        left.append(n_stored())
        assert 0 < left[-2] - left[-1] <= 3
    chunks.write_rows("q", spec, 500, np.ones((700, 80), np.float32))
    chunks.seal(tails=True)
    assert n_stored() == 0
    chunks.close()
