"""A record with one damaged chunk: the page names it, and has everything else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.explorer import one_file
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import ModuleRow, Variable
from notebook_probe.record.read.reader import open_record
from tests.explorer.handed_on.unpacked import Unpacked, unpacked

MODULES = [ModuleRow("(root)", "Net", 4, 0, -1), ModuleRow("fc", "Linear", 4, 4, 0)]
LOSS = Variable("loss", "1", LOGGED_BY)
N_STEPS, CHUNK = 40, 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two quantities and the loss of forty steps, in chunks of ten."""
    place = tmp_path_factory.mktemp("damaged") / "whole.zarr"
    with RecordWriter(place, title="net", modules=MODULES, chunks={"step": CHUNK}) as writer:
        norms, logged = writer.stream("every_1"), writer.stream("of_loop")
        norms.extend(["fc"], [Variable("grad_norm"), Variable("weight_norm")])
        logged.extend(["(root)"], [LOSS])
        for step in range(N_STEPS):
            norms.record(step, 1000 * step, np.full((2, 1), step + 1, np.float32))
            logged.record(step, 1000 * step, np.full((1, 1), step + 1, np.float32))
    return place


def damaged(whole: Path, folder: Path, chunk: str) -> Path:
    place = folder / "run.zarr"
    shutil.copytree(whole, place)
    (place / "scalars" / chunk).write_bytes(b"garbage" * 9)
    return place


def page_of(place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Unpacked:
    monkeypatch.setattr(one_file, "find_spec", lambda name: None)  # no picture, which takes time
    page = one_file.to_html(open_record(place), None, folder / "run.html").read_text("utf-8")
    found = re.search(r'id="package"[^>]*>([^<]*)<', page)
    assert found is not None
    return unpacked(found[1])


@pytest.mark.parametrize(
    ("chunk", "missing"),
    [
        ("every_1/grad_norm/c/1/0", {("heat", "grad_norm")}),
        ("every_1/step/c/0", {("heat", "grad_norm"), ("heat", "weight_norm")}),
        ("of_loop/loss/c/1/0", {("heat", "loss")}),
    ],
)
def test_a_page_names_a_damaged_chunk_and_has_everything_else(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk: str,
    missing: set[tuple[str, str]],
) -> None:
    every = page_of(whole, tmp_path, monkeypatch)
    assert every.said("saved")["unreadable"] == []
    place = damaged(whole, tmp_path, chunk)
    found = page_of(place, tmp_path, monkeypatch)
    [text] = found.said("saved")["unreadable"]
    assert text.startswith(f"cannot read {place}/scalars/{chunk}:")
    assert {*every.frames} - {*found.frames} == missing & {*every.frames}
    assert len(found.said("saved")["clock"]["steps"]) == N_STEPS


def test_a_status_of_a_record_with_a_damaged_time_says_so(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = damaged(whole, tmp_path, "every_1/time/c/0")
    found = page_of(place, tmp_path, monkeypatch)
    [problem] = found.said("status")["problems"]
    assert problem["text"].startswith(f"cannot read {place}/scalars/every_1/time/c/0:")


@pytest.mark.slow
def test_a_picture_leaves_the_lines_out_that_cannot_be_read(whole: Path, tmp_path: Path) -> None:
    place = damaged(whole, tmp_path, "of_loop/loss/c/1/0")
    page = one_file.to_html(open_record(place), None, tmp_path / "run.html").read_text("utf-8")
    assert "data:image/png" in page


def test_a_panel_names_a_damaged_chunk_once_and_shows_the_rest(whole: Path, tmp_path: Path) -> None:
    chunk = "every_1/grad_norm/c/3/0"
    place = damaged(whole, tmp_path, chunk)
    session = PanelSession(open_record(place), None)
    for _ in range(2):
        assert session.look().home == "weight_norm"
    [problem] = session._problems.rows()
    assert problem["count"] == 1
    assert f"RecordFormatError: cannot read {place}/scalars/{chunk}:" in problem["text"]
    session.close()
