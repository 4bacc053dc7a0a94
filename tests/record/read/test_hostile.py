"""Broken and hostile stores: one clear error each, nothing executed, the rest still readable."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import google_crc32c
import numpy as np
import pytest
from numcodecs import Blosc

from notebook_probe.errors import RecordFormatError, RecordWarning
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.format.codec import decode, encode
from tests.record.build import BINS, COUNTS, GRAD, MODULES, WEIGHT, fill, new_writer, vectors

Nodes: TypeAlias = dict[str, dict[str, Any]]
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed record: two streams of numbers, one of histograms, an event."""
    folder = tmp_path_factory.mktemp("hostile") / "whole.zarr"
    with new_writer(folder) as writer:
        for name, steps in (("every_1", range(8)), ("every_2", range(0, 8, 2))):
            stream = writer.stream(name)
            stream.extend(["conv1", "fc"], [GRAD, WEIGHT])
            fill(stream, steps)
        hist = writer.stream("every_1", axis=BINS)
        hist.extend(["fc"], [COUNTS])
        for step in range(4):
            assert hist.record(step, step, vectors(hist, step))
        writer.event(3, "attach", "fc")
    return folder


def spoil(folder: Path, change: Callable[[Nodes], object]) -> None:
    """Change what the commit record says of the arrays."""
    root = json.loads((folder / "zarr.json").read_text())
    change(root["consolidated_metadata"]["metadata"])
    (folder / "zarr.json").write_text(json.dumps(root))


def other_stream_is_whole(folder: Path) -> None:
    with pytest.warns(RecordWarning):
        record = open_record(folder)
    assert record.streams["every_2"].values("grad_norm")[:, 0].tolist() == [0, 2, 4, 6]


CHUNKS = ["step/c/0", "time/c/0", "grad_norm/c/0/0"]
BYTES = [b"", b"\x02\x01\x21", b"not a frame at all, but longer than a header", b"\xff" * 64]


@pytest.mark.parametrize("key", CHUNKS)
@pytest.mark.parametrize("content", [*BYTES, None], ids=lambda c: repr(c)[:12])
def test_a_damaged_chunk_is_named_when_it_is_read(
    folder: Path, key: str, content: bytes | None
) -> None:
    chunk = folder / "scalars/every_1" / key
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[: len(whole) // 2] if content is None else content)
    record = open_record(folder)
    with pytest.raises(RecordFormatError, match=rf"run\.zarr/scalars/every_1/{key.split('/')[0]}"):
        record.series("conv1", "grad_norm")
    assert record.streams["every_2"].values("grad_norm")[:, 1].tolist() == [100, 102, 104, 106]


def test_a_chunk_of_another_size_is_an_error_not_a_misreading(folder: Path) -> None:
    frame = Blosc(cname="zstd").encode(np.zeros(1 << 22, np.float32))
    (folder / "scalars/every_1/grad_norm/c/0/0").write_bytes(bytes(frame))
    with pytest.raises(RecordFormatError, match="every_1/grad_norm"):
        open_record(folder).series("conv1", "grad_norm")


@pytest.mark.parametrize("missing", ["step", "time", "module"])
def test_a_stream_without_an_axis_is_left_out(folder: Path, missing: str) -> None:
    spoil(folder, lambda nodes: nodes.pop(f"scalars/every_1/{missing}"))
    with pytest.warns(RecordWarning, match=f"every_1/{missing} is missing"):
        record = open_record(folder)
    assert list(record.streams) == ["every_2"]
    other_stream_is_whole(folder)


def set_in(array: str, **metadata: object) -> Callable[[Nodes], None]:
    return lambda nodes: nodes[f"scalars/every_1/{array}"].update(metadata)


SPOILT = {
    "wrong dtype": set_in("grad_norm", data_type="float64"),
    "object dtype": set_in("grad_norm", data_type="object"),
    "shape of another stream": set_in("grad_norm", shape=[8, 3]),
    "too short": set_in("grad_norm", shape=[7, 2]),
    "giant shape": set_in("grad_norm", shape=[2**50, 2**50]),
    "negative shape": set_in("grad_norm", shape=[-8, 2]),
    "shape of words": set_in("grad_norm", shape=["8", "2"]),
    "shape beyond integers": set_in("grad_norm", shape=[10**400, 2]),
    "no shape": lambda nodes: nodes["scalars/every_1/grad_norm"].pop("shape"),
    "no chunks": set_in("grad_norm", chunk_grid={"name": "regular"}),
    "attributes no mapping": set_in("grad_norm", attributes=3),
    "text as steps": set_in("step", data_type="string"),
    "a scalar axis": set_in("step", shape=[], dimension_names=[]),
    "giant module axis": set_in("module", shape=[2**40]),
    "module axis as matrix": set_in("module", shape=[2, 2], dimension_names=["module", "x"]),
}


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_what_is_declared_wrongly_is_left_out_and_named(
    folder: Path, change: Callable[[Nodes], object]
) -> None:
    spoil(folder, change)
    with pytest.warns(RecordWarning, match=r"run\.zarr/scalars/every_1/(grad_norm|step|module) "):
        record = open_record(folder)
    assert len(record.problems) == 1
    assert record.data["grad_norm"].sel(module="fc", step=4) == 104  # of the other stream
    other_stream_is_whole(folder)


def test_terabytes_that_are_only_declared_are_not_allocated(folder: Path) -> None:
    def change(nodes: Nodes) -> None:
        for name, node in nodes.items():
            if name.startswith("scalars/every_1/") and "step" in node.get("dimension_names", ()):
                node["shape"] = [2**42, *node["shape"][1:]]

    spoil(folder, change)
    record = open_record(folder)
    with pytest.raises(RecordFormatError, match=r"every_1/step has 4398046511104 rows"):
        record.series("conv1", "grad_norm")
    assert record.streams["every_2"].steps().tolist() == [0, 2, 4, 6]


def test_a_codec_nobody_knows_is_named_when_it_is_needed(folder: Path) -> None:
    spoil(folder, set_in("grad_norm", codecs=[{"name": "os.system", "configuration": {}}]))
    record = open_record(folder)
    with pytest.raises(RecordFormatError, match="every_1/grad_norm"):
        record.series("conv1", "grad_norm")
    assert record.series("conv1", "weight_norm").size == 8


@pytest.mark.parametrize(
    "path",
    ["scalars/../../../etc", "/etc/passwd", "scalars/a\0b", "scalars/" + "x" * 300, "scalars/..",
     "scalars//x", "scalars/a\\b", "scalars/%2e%2e/../x", EVIL],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_never_opened(folder: Path, path: str) -> None:
    spoil(folder, lambda nodes: nodes.update({path: nodes["scalars/every_1"]}))
    with pytest.warns(RecordWarning, match="names a part"):
        record = open_record(folder)
    assert list(record.streams) == ["every_1", "every_2"]


ROOTS = {
    "no JSON": b"{",
    "no UTF-8": b'{"attributes": "\xff\xfe"}',
    "nested too deep": b"[" * 100_000,
    "a list": b"[1]",
    "no attributes": b'{"zarr_format":3,"node_type":"group"}',
    "no version": b'{"zarr_format":3,"node_type":"group","attributes":{}}',
    "a version in words": b'{"attributes":{"format_version":"1"}}',
    "version 0": b'{"attributes":{"format_version":0}}',
    "nothing consolidated": b'{"attributes":{"format_version":1}}',
    "nodes as list": b'{"attributes":{"format_version":1},"consolidated_metadata":{"metadata":[]}}',
    "empty": b"",
}


@pytest.mark.parametrize("document", ROOTS.values(), ids=ROOTS)
def test_a_root_that_says_nothing_useful_is_no_record(folder: Path, document: bytes) -> None:
    (folder / "zarr.json").write_bytes(document)
    with pytest.raises(RecordFormatError, match=r"run\.zarr is not a record"):
        open_record(folder)


def test_a_record_of_which_nothing_can_be_read_is_an_error(folder: Path) -> None:
    def change(nodes: Nodes) -> None:
        for name in [name for name in nodes if name.endswith("/step")]:
            del nodes[name]

    spoil(folder, change)
    with pytest.raises(RecordFormatError, match="step is missing"):
        open_record(folder)


def test_nothing_goes_on_with_a_record_that_it_cannot_read_whole(folder: Path) -> None:
    spoil(folder, set_in("grad_norm", data_type="float64"))
    with (
        pytest.warns(RecordWarning),
        pytest.raises(RecordFormatError, match="every_1/grad_norm is float64"),
    ):
        RecordWriter(folder, title="again", modules=MODULES)


@pytest.mark.parametrize("table", ["modules", "events"])
def test_a_lost_table_leaves_the_numbers(folder: Path, table: str) -> None:
    spoil(folder, lambda nodes: [nodes.pop(name) for name in list(nodes) if table in name])
    with pytest.warns(RecordWarning, match=f"{table}/.* is missing"):
        record = open_record(folder)
    assert record.series("fc", "weight_norm").size == 8
    assert record.series("fc", "counts").shape == (4, 3)


def test_names_that_are_no_text_leave_their_stream_out(folder: Path) -> None:
    text = b"\x02\0\0\0" + b"\x02\0\0\0\xff\xfe" + b"\x02\0\0\0fc"
    frame = Blosc(cname="zstd").encode(text)
    (folder / "scalars/every_1/module/c/0").write_bytes(bytes(frame))
    with pytest.warns(RecordWarning, match="every_1/module"):
        assert list(open_record(folder).streams) == ["every_2"]


def test_html_in_names_and_attributes_stays_text(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "a.zarr", title=EVIL, modules=(), attrs={EVIL: EVIL}) as writer:
        stream = writer.stream("every_1", EVIL)
        stream.extend([EVIL], [GRAD])
        fill(stream, range(2))
    record = open_record(tmp_path / "a.zarr")
    assert record.series(EVIL, "grad_norm").size == 2
    for shown in (record.data, record.to_xarray("cube"), record.to_xarray("tree")):
        html = shown._repr_html_()
        assert "<script>alert" not in html
        assert "<img src=x" not in html


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_root_that_is_a_pipe_or_a_folder_does_not_hang(folder: Path) -> None:
    (folder / "zarr.json").unlink()
    (folder / "zarr.json").mkdir()
    with pytest.raises(RecordFormatError, match="no record at"):
        open_record(folder)
    (folder / "zarr.json").rmdir()
    os.mkfifo(folder / "zarr.json")
    with pytest.raises(RecordFormatError, match="no record at"):
        open_record(folder)


def fill_with_zeros(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    os.truncate(path, 2**40)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
@pytest.mark.parametrize("spoil_file", [fill_with_zeros, make_pipe, make_endless])
@pytest.mark.parametrize("key", [*CHUNKS, "module/c/0"])
def test_what_is_no_plain_file_is_not_read(
    folder: Path, key: str, spoil_file: Callable[[Path], None]
) -> None:
    spoil_file(folder / "scalars/every_1" / key)
    if key.startswith("module"):  # read when the record is opened
        with pytest.warns(RecordWarning, match=r"every_1/module.*(no plain file|at most)"):
            open_record(folder)
        return
    with pytest.raises(RecordFormatError, match=rf"every_1/{key} (is no plain file|has \d+ bytes)"):
        open_record(folder).series("conv1", "grad_norm")
    assert open_record(folder).streams["every_2"].steps().tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("key", ["grad_norm/c/0/0", "module/c/0"])
def test_a_frame_that_says_it_is_huge_is_not_decoded(folder: Path, key: str) -> None:
    chunk = folder / "scalars/every_1" / key
    frame = bytearray(chunk.read_bytes())
    frame[4:8] = (2**31 - 1).to_bytes(4, "little")
    frame[-4:] = google_crc32c.value(bytes(frame[:-4])).to_bytes(4, "little")  # made on purpose
    chunk.write_bytes(frame)
    said = r"every_1/(grad_norm|module).* a blosc frame of 2147483647 bytes"
    tracemalloc.start()
    try:
        with (
            pytest.warns(RecordWarning, match=said)
            if "module" in key
            else pytest.raises(RecordFormatError, match=said)
        ):
            open_record(folder).series("conv1", "weight_norm" if "module" in key else "grad_norm")
        assert tracemalloc.get_traced_memory()[1] < 2**28
    finally:
        tracemalloc.stop()


def test_a_writer_does_not_decode_a_frame_that_says_it_is_huge(folder: Path) -> None:
    chunk = folder / "scalars/every_1/step/c/0"
    frame = bytearray(chunk.read_bytes())
    frame[4:8] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(ValueError, match="a blosc frame of 2147483647 bytes"):
        decode(bytes(frame), "int64", (65536,))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "sharding_indexed", "crc32c"])
def test_codecs_other_than_the_formats_own_are_refused_before_anything_is_decompressed(
    folder: Path, codec: str
) -> None:
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": codec}]
    spoil(folder, set_in("grad_norm", codecs=codecs))
    (folder / "scalars/every_1/grad_norm/c/0/0").write_bytes(gzip.compress(bytes(2**25)))

    def read() -> None:
        with pytest.raises(RecordFormatError, match=f"grad_norm.*{codec}"):
            open_record(folder).series("conv1", "grad_norm")

    read()  # what is imported on first use is not counted
    tracemalloc.start()
    try:
        read()
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_level_of_a_pyramid_longer_than_its_stream_is_not_used(tmp_path: Path) -> None:
    with new_writer(tmp_path / "long.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", "fc"], [GRAD])
        fill(stream, range(128))

    def change(nodes: Nodes) -> None:
        for name, node in nodes.items():
            if name.startswith("pyramid/every_1/by64/") and "step" in node.get(
                "dimension_names", ()
            ):
                node["shape"] = [2**40, *node["shape"][1:]]

    spoil(tmp_path / "long.zarr", change)
    assert 64 not in open_record(tmp_path / "long.zarr").streams["every_1"].levels


def write_steps(folder: Path, steps: list[int]) -> None:
    """Replace the chunk of steps by one of the same size."""
    node = json.loads((folder / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    (size,) = node["scalars/every_1/step"]["chunk_grid"]["configuration"]["chunk_shape"]
    chunk = np.full(size, -1, np.int64)
    chunk[: len(steps)] = steps
    (folder / "scalars/every_1/step/c/0").write_bytes(encode(chunk))
