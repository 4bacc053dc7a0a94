"""A bit that flips on the disk: a finished chunk is read as it was written, or not at all."""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numcodecs import Blosc

from notebook_probe.errors import RecordFormatError, RecordWarning, RecordWriteError
from notebook_probe.record import open_record
from notebook_probe.record.format import codec
from tests.readers.sample_record import begin, finish
from tests.record.build import new_writer

RNG = np.random.default_rng(0)
CHUNKS = {
    "noise": RNG.normal(size=(1024, 8)).astype(np.float32),
    "incompressible": RNG.integers(0, 2**32, 4096, np.uint32).view(np.float32),
    "constant": np.full((1024, 8), np.nan, np.float32),
    "few": np.arange(3.0),
    "one": np.zeros(1, np.int64),
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rot") / "a.zarr"
    finish(begin(folder))
    return folder


def chunks(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "/c/" in str(path)]


def read(folder: Path) -> list[xr.Dataset]:
    """All of a record; raises RecordFormatError for a part that cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        opened = open_record(folder)
    for problem in opened.problems:
        raise problem
    return [node.to_dataset().load() for node in opened.to_xarray("tree").subtree]


def flip(path: Path, random_bits: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[random_bits.randrange(len(content))] ^= 1 << random_bits.randrange(8)
    path.write_bytes(content)


@pytest.mark.slow
def test_every_flipped_bit_of_a_closed_record_is_noticed(record: Path, tmp_path: Path) -> None:
    bits, sound, told = random.Random(0), read(record), []
    for path in chunks(record):
        place = Path(shutil.copytree(record, tmp_path / "b.zarr"))
        flip(place / path.relative_to(record), bits)
        try:
            values = read(place)
        except RecordFormatError as error:
            told.append(str(error))
        else:  # in the mark of a checksum, say: the values are all there
            for one, other in zip(values, sound, strict=True):
                xr.testing.assert_identical(one, other)
        shutil.rmtree(place)
    assert len(told) > 10
    assert all(str(tmp_path) in text for text in told)


@pytest.mark.parametrize("name", CHUNKS)
def test_no_flipped_bit_of_a_chunk_makes_other_values(name: str) -> None:
    chunk, bits = CHUNKS[name], random.Random(1)
    frame = codec.encode(chunk)
    assert codec.decode(frame, chunk.dtype.name, chunk.shape).tobytes() == chunk.tobytes()
    assert bytes(Blosc().decode(frame)) == chunk.tobytes(), "for who knows blosc alone"
    assert int.from_bytes(frame[12:16], "little") == len(frame)
    assert codec.packed(frame) == frame
    for _ in range(200):
        other = bytearray(frame)
        other[bits.randrange(len(frame))] ^= 1 << bits.randrange(8)
        try:
            values = codec.decode(bytes(other), chunk.dtype.name, chunk.shape)
        except (ValueError, RuntimeError):
            continue
        assert values.tobytes() == chunk.tobytes()


def test_the_checksum_is_crc32c_of_all_before_it() -> None:
    frame = codec.encode(CHUNKS["few"])
    assert frame[-8:-4] == b"crc3"
    assert int.from_bytes(frame[-4:], "little") == crc32c(frame[:-4])


def crc32c(content: bytes) -> int:
    """Bit by bit, with Castagnoli's polynomial."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_a_chunk_of_an_older_record_without_a_checksum_is_read(
    record: Path, tmp_path: Path
) -> None:
    place = Path(shutil.copytree(record, tmp_path / "old.zarr"))
    sound = read(record)
    for path in chunks(place):
        frame = path.read_bytes()
        bare = frame[:-8]
        path.write_bytes(bare[:12] + len(bare).to_bytes(4, "little") + bare[16:])
    for one, other in zip(read(place), sound, strict=True):
        xr.testing.assert_identical(one, other)


def test_a_damaged_last_chunk_is_not_written_on(record: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(record, tmp_path / "run.zarr"))
    damaged = place / "scalars" / "every_1" / "grad_norm" / "c" / "0" / "0"
    content = bytearray(damaged.read_bytes())
    content[40] ^= 1
    damaged.write_bytes(content)
    writer = new_writer(place)
    stream = writer.stream("every_1")
    stream.record(1000, 0, np.zeros(stream.shape, np.float32))
    assert not writer.flush(60)
    assert "checksum" in writer.last_error
    with pytest.raises(RecordWriteError, match="checksum"):
        writer.close()
    assert damaged.read_bytes() == content
