"""The format page: its reader reads, and it names what a record has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from numcodecs import Blosc

from notebook_probe.record.format import schema
from notebook_probe.record.format.codec import encode_text
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from tests.readers.sample_record import begin, finish, nodes_of, plain

PAGE = (Path(__file__).parents[2] / "docs/reference/format.md").read_text("utf-8")
READER, TEXT_READER = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_pages_own_reader_reads_an_open_and_a_closed_record(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    writer = begin(folder)
    check(folder)
    finish(writer)
    check(folder)


def check(folder: Path) -> None:
    names = {"folder": folder}
    exec(compile(READER, "docs/reference/format.md", "exec"), names)
    read = names["read"]
    assert callable(read)
    exec(compile(TEXT_READER, "docs/reference/format.md", "exec"), names)
    read_text = names["read_text"]
    assert callable(read_text)
    for path, node in nodes_of(folder).items():
        if node["data_type"] == "string":
            assert read_text(folder, path) == plain(folder, path).tolist(), path
        else:
            assert read(folder, path).tobytes() == plain(folder, path).tobytes(), path
    assert np.asarray(names["measured"]).sum() == sum(
        (values.view("u4") != 0x7FC00000).sum()
        for values in [plain(folder, "scalars/every_1/weight_norm")]
    )


def test_the_bytes_of_text_on_the_page_are_those_that_are_written() -> None:
    (shown,) = re.findall(r'`\["fc", ""\]` is `([0-9a-f ]+)`', PAGE)
    assert bytes(Blosc().decode(encode_text(["fc"], 2))) == bytes.fromhex(shown)
    spelled = bytes(Blosc().decode(encode_text(["\udcff"], 1)))
    assert spelled[8:] == rb"\udcff"


def test_the_page_says_the_version_and_the_bits_that_are_written() -> None:
    assert f"format version {schema.FORMAT_VERSION}" in PAGE
    assert f"`0x{NOT_MEASURED.view(np.uint32):08x}`" in PAGE
    assert f"`0x{MEASURED_NAN.view(np.uint32):08x}`" in PAGE


def test_every_group_array_and_attribute_of_a_record_is_on_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    finish(begin(folder))
    words = set(re.findall(r"\w+", PAGE))
    quantities = {"grad_norm", "weight_norm", "counts"}
    for path in nodes_of(folder):
        kind, *_, name = path.split("/")
        known = name in words or name.rpartition("_")[0] in quantities or name in quantities
        assert kind in words, path
        assert known or name.startswith("bin"), path
    root = json.loads((folder / "zarr.json").read_text())
    assert root["attributes"].keys() <= words
