"""A record read in JavaScript, by a reader of forty lines that follows docs/reference/format.md."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.record import open_record
from tests.docs.running import DOCS
from tests.readers.sample_record import begin, finish, nodes_of, plain

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.readers,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
    pytest.mark.skipif(
        not (HERE / "node_modules/zarrita").is_dir(),
        reason="zarrita is not installed; `make test-readers` does that",
    ),
]


def read(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        ["node", str(HERE / "record.mjs"), str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def check(folder: Path, state: str) -> None:
    told = read(folder)
    assert told["attributes"]["state"] == state
    nodes = nodes_of(folder)
    assert told["arrays"].keys() == nodes.keys()
    for path, array in told["arrays"].items():
        expected = plain(folder, path)
        assert array["shape"] == list(expected.shape)
        if nodes[path]["data_type"] == "string":
            assert list(array["values"]) == expected.tolist(), path
        else:
            assert base64.b64decode(array["values"]) == np.ascontiguousarray(expected).tobytes(), (
                path
            )


def test_zarrita_reads_an_open_and_a_closed_record(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    writer = begin(folder)
    check(folder, "open")
    finish(writer)
    check(folder, "closed")


def test_it_finds_the_series_that_our_reader_finds(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    finish(begin(folder))
    arrays = read(folder)["arrays"]
    values = np.frombuffer(base64.b64decode(arrays["scalars/every_1/grad_norm"]["values"]), "<f4")
    column = arrays["scalars/every_1/module"]["values"].index("fc")
    series = values.reshape(arrays["scalars/every_1/grad_norm"]["shape"])[:, column]
    there = series.view(np.uint32) != 0x7FC00000
    ours = open_record(folder).series("fc", "grad_norm")
    assert series[there].tobytes() == ours.to_numpy().tobytes()


def test_the_script_of_the_page_reads_a_series(tmp_path: Path) -> None:
    folder = tmp_path / "runs/first.zarr"
    folder.parent.mkdir()
    finish(begin(folder))
    page = (DOCS / "how_to/read_elsewhere.md").read_text("utf-8")
    [script] = re.findall(r"^```js\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.mjs").write_text(script.replace('indexOf("0")', 'indexOf("fc")'), "utf-8")
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    done = subprocess.run(
        ["node", "page.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    ours = open_record(folder).data.grad_norm.sel(module="fc")
    assert [value is None for value in told["series"]] == ours.isnull().values.tolist()
    assert [v for v in told["series"] if v is not None] == ours.dropna("step").values.tolist()
