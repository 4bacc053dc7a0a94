"""Broken vectors, arrays, pyramids and branches: named, left out, the numbers still readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from notebook_probe.errors import RecordFormatError, RecordWarning
from notebook_probe.record import Variable, open_record
from notebook_probe.record.views.thinning import zoom
from notebook_probe.record.write.streams import levels
from tests.record.build import BINS, COUNTS, GRAD, fill, new_writer, vectors

Node: TypeAlias = dict[str, Any]
N_ROWS = 2048


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes") / "whole.zarr"
    with pytest.MonkeyPatch.context() as patch, new_writer(folder) as writer:
        patch.setattr(levels, "FEWEST_BLOCKS", (1, 1, 1))
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        fill(stream, range(N_ROWS))
        hist = writer.stream("every_1", axis=BINS)
        hist.extend(["fc"], [COUNTS])
        assert hist.record(0, 0, vectors(hist, 0))
        ragged = writer.ragged("every_1")
        ragged.extend([Variable("channel_norm")])
        assert ragged.record(0, 0, {("channel_norm", "fc"): np.ones(3)})
        for module in ("fc", "conv1"):
            assert writer.arrays(Variable("image"), module, (2, 2)).record(0, 0, np.eye(2))
    return folder


def spoil(folder: Path, path: str, **changed: object) -> None:
    root = json.loads((folder / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"][path].update(changed)
    (folder / "zarr.json").write_text(json.dumps(root))


SPOILT = {
    "bins of words": ("hist/every_1/bin", {"data_type": "string"}),
    "giant axis": ("hist/every_1/bin", {"shape": [2**40]}),
    "axes of two lengths": ("hist/every_1/bin_lo", {"shape": [2]}),
    "vectors too short": ("hist/every_1/counts", {"shape": [1, 1, 2]}),
    "elements of numbers": ("vectors/every_1/module_of_element", {"data_type": "int64"}),
    "giant element axis": ("vectors/every_1/index_in_module", {"shape": [2**40]}),
    "an array of no module": ("blobs/image/fc", {"attributes": {}}),
    "an array without steps": ("blobs/image/fc/step", {"node_type": "group"}),
    "an array of other numbers": ("blobs/image/fc/image", {"data_type": "int8"}),
    "an array with more steps": ("blobs/image/fc/image", {"shape": [7, 2, 2]}),
}


@pytest.mark.parametrize(("path", "changed"), SPOILT.values(), ids=SPOILT)
def test_a_part_that_is_wrong_is_left_out_and_named(folder: Path, path: str, changed: Node) -> None:
    spoil(folder, path, **changed)
    with pytest.warns(RecordWarning, match=f"left out: .*{'/'.join(path.split('/')[:2])}"):
        record = open_record(folder)
    assert len(record.problems) == 1
    assert record.series("fc", "grad_norm").size == N_ROWS
    assert record.data["grad_norm"].shape == (1, N_ROWS)


@pytest.mark.parametrize(
    "changed",
    [{"shape": [3, 1]}, {"shape": [2**40, 1]}, {"data_type": "float64"}, {"node_type": "group"}],
    ids=str,
)
def test_a_wrong_pyramid_is_done_without(
    folder: Path, changed: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoom, "RAW_ROWS", 0)
    for size in (64, 1024):
        spoil(folder, f"pyramid/every_1/by{size}/grad_norm_max", **changed)
    thinned = open_record(folder).thinned("fc", "grad_norm", n_points=16)
    assert (thinned.y.min(), thinned.y.max()) == (0, N_ROWS - 1)


def test_a_damaged_pyramid_chunk_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoom, "RAW_ROWS", 0)
    for chunk in (folder / "pyramid/every_1").glob("*/grad_norm_max/c/*/*"):
        chunk.write_bytes(chunk.read_bytes()[:20])
    record = open_record(folder)
    with pytest.raises(RecordFormatError, match=r"pyramid/every_1/by.*/grad_norm_max"):
        record.thinned("fc", "grad_norm", n_points=16)
    assert record.series("fc", "grad_norm").size == N_ROWS


@pytest.mark.parametrize("array", ["step", "time", "image"])
def test_a_damaged_array_is_named_by_its_file_and_all_others_are_read(
    folder: Path, tmp_path: Path, array: str
) -> None:
    new_writer(folder, resume="branch").close()  # whose history asks others for their rows
    below = (folder / "blobs/image/fc" / array / "c").rglob("*")
    [chunk] = (path for path in below if path.is_file())
    chunk.write_bytes(b"not a frame at all, but longer than a header")
    record = open_record(folder)
    assert record.series("fc", "grad_norm").size == N_ROWS
    assert record.series("fc", "counts").shape == (1, 3)
    assert record.series("fc", "channel_norm").shape == (1, 3)
    assert record.series("conv1", "image").values.tolist() == [np.eye(2).tolist()]
    assert {*record.blobs["image"]} == {"fc", "conv1"}
    assert record.to_dataframe("counts").shape[0] == 3
    where = chunk.relative_to(folder).as_posix()
    with pytest.raises(RecordFormatError, match=rf"cannot read .*run\.zarr/{where}: "):
        record.series("fc", "image").load()


def test_streams_of_one_name_are_cut_by_their_own_rows_where_a_branch_begins(
    tmp_path: Path,
) -> None:
    folder, norm = tmp_path / "a.zarr", Variable("channel_norm")
    for resume, steps in ((None, range(10)), ("branch(6)", range(6, 8))):
        with new_writer(folder, resume=resume) as writer:
            stream, ragged = writer.stream("every_1"), writer.ragged("every_1")
            stream.extend(["fc"], [GRAD])
            ragged.extend([norm])
            for step in steps:
                assert stream.record(step, 0, np.full((1, 1), step, np.float32))
                if step % 3 == 0:
                    assert ragged.record(step, 0, {("channel_norm", "fc"): [step]})
                    for name in ("image", "kernel")[: 1 + step // 6]:
                        shown = writer.arrays(Variable(name), "fc", (1,))
                        assert shown.record(step, 0, [step])
    record = open_record(folder)
    found = {
        name: record.series("fc", name).step.values.tolist()
        for name in ("grad_norm", "channel_norm", "image", "kernel")
    }
    assert found == {
        "grad_norm": [*range(8)],
        "channel_norm": [0, 3, 6],
        "image": [0, 3, 6],
        "kernel": [6],
    }


@pytest.mark.parametrize("branches", ["0", [], [0, "x"], {"a": 1}, [0, None]], ids=str)
def test_branches_that_make_no_sense_are_refused(folder: Path, branches: object) -> None:
    root = json.loads((folder / "zarr.json").read_text())
    root["attributes"]["branches"] = branches
    (folder / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(RecordFormatError, match="branches="):
        open_record(folder)
