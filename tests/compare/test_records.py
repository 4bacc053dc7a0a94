"""Runs as they lie on disk: begun again, branched, damaged, growing elsewhere, or live."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import nn

import notebook_probe as nbp
from notebook_probe.compare import PartingSearch, RatioGrid, RunAxis, align, group, parting, ratio
from notebook_probe.errors import RecordFormatError
from notebook_probe.figures import ratio as drawn_ratio
from notebook_probe.record import OpenedRecord, RecordWriter, StreamWriter, open_record
from notebook_probe.record.views.thinning.heat_grid import MEASURED
from tests.record.build import GRAD, MODULES, new_writer


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


START_MS = 1_700_000_000_000
NAMES = [row.name for row in MODULES[1:]]


def begin(writer: RecordWriter) -> StreamWriter:
    stream = writer.stream("every_1")
    stream.extend(NAMES, [GRAD])
    return stream


def write(stream: StreamWriter, steps: range, *, fc: float = 1.0, begun_s: int = 0) -> None:
    """Norms of 1, at ``fc`` another value; a second for each step."""
    row = np.array([[1.0, 1.0, fc]], np.float32)
    for step in steps:
        assert stream.record(step, START_MS + 1000 * (begun_s + step), row)


def record(folder: Path, n: int = 60, *, fc: float = 1.0, from_step: int = 0) -> OpenedRecord:
    with new_writer(folder) as writer:
        stream = begin(writer)
        write(stream, range(from_step))
        write(stream, range(from_step, n), fc=fc)
    return open_record(folder)


@pytest.fixture
def plain(tmp_path: Path) -> OpenedRecord:
    return record(tmp_path / "plain.zarr")


def test_of_a_run_that_went_back_the_rows_it_has_now_are_compared(
    tmp_path: Path, plain: OpenedRecord
) -> None:
    record(tmp_path / "a.zarr", 60, fc=9.0, from_step=10)
    with new_writer(tmp_path / "a.zarr", resume=20) as writer:
        write(begin(writer), range(20, 60), begun_s=86_400)
    again = open_record(tmp_path / "a.zarr")
    found = parting(again, plain, "grad_norm", rows=8)
    assert [(one.module, one.step) for one in found] == [("fc", 10)]
    np.testing.assert_allclose([found[0].there, found[0].now], [np.log10(9), 0], atol=1e-6)
    places = RunAxis(again, "time").places
    assert places.at([0, 19, 20, 59]).tolist() == [0, 19, 86_420, 86_459]
    assert align(plain, again, by="time").steps_here([19]).tolist() == [19]
    assert np.isnan(align(plain, again, by="time").steps_here([20])[0])


def test_of_a_branched_run_each_branch_is_a_run(tmp_path: Path, plain: OpenedRecord) -> None:
    record(tmp_path / "a.zarr", 60, fc=9.0, from_step=10)
    with new_writer(tmp_path / "a.zarr", resume="branch(30)") as writer:
        write(begin(writer), range(30, 60), fc=81.0)
    first, second = (OpenedRecord(tmp_path / "a.zarr", branch) for branch in (1, 2))
    assert [one.step for one in parting(first, plain, "grad_norm")] == [10]
    np.testing.assert_allclose(parting(second, plain, "grad_norm")[0].now, np.log10(81), atol=1e-6)
    assert [one.step for one in parting(second, first, "grad_norm")] == [30]


def test_a_record_that_grows_elsewhere_is_followed(tmp_path: Path, plain: OpenedRecord) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = begin(writer)
        write(stream, range(20))
        assert writer.flush(60)
        growing = open_record(tmp_path / "a.zarr")
        search = PartingSearch(plain, [growing], "grad_norm", by="time")
        grid = RatioGrid(plain, [growing], "grad_norm")
        assert search.found().text == "They stay within ×2 at all 3 modules"
        write(stream, range(20, 40), fc=0.1)
        assert writer.flush(60)
        assert [(one.module, one.step) for one in search.found()] == [("fc", 20)]
        write(stream, range(40, 60), fc=0.1)
        assert writer.flush(60)
        grid.read_new()
        cells = grid.grid()
        assert cells is not None
        assert cells.state[-1].tolist() == [MEASURED] * 60


def test_what_is_damaged_is_named_and_the_others_are_put_together(
    tmp_path: Path, plain: OpenedRecord
) -> None:
    bad = record(tmp_path / "bad.zarr")
    for chunk in (tmp_path / "bad.zarr/scalars/every_1/grad_norm").rglob("c/*/*"):
        chunk.write_bytes(b"\0" * chunk.stat().st_size)
    with pytest.raises(RecordFormatError, match=r"bad\.zarr.*grad_norm"):
        parting(plain, bad, "grad_norm")
    band = group([plain, bad], "fc", "grad_norm")
    assert band.n.max() == 1
    assert "grad_norm" in band.left_out[0]


@pytest.mark.slow
def test_who_is_damaged_is_left_out_of_a_group_and_the_others_are_compared_with(
    tmp_path: Path, plain: OpenedRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = [record(tmp_path / f"{k}.zarr", fc=8.0, from_step=20) for k in range(3)]
    for chunk in (tmp_path / "1.zarr/scalars/every_1/grad_norm").rglob("c/*/*"):
        chunk.write_bytes(b"\0" * chunk.stat().st_size)
    fine = [seeds[0], seeds[2]]
    for most in (500_000, 1):  # row by row, and by columns
        monkeypatch.setattr(sys.modules[PartingSearch.__module__], "MOST_VALUES", most)
        found = parting(plain, seeds, "grad_norm")
        assert found.found == parting(plain, fine, "grad_norm").found
        assert [(one.module, one.step) for one in found] == [("fc", 20)]
        assert found.others == ("0", "2")
        [why] = found.left_out
        assert why.startswith(f"{seeds[1].name} is left out: cannot read")
    cells, wanted = ratio(plain, seeds, "grad_norm"), ratio(plain, fine, "grad_norm")
    assert cells is not None
    assert wanted is not None
    np.testing.assert_array_equal(cells.apart, wanted.apart)
    assert cells.left_out == (why,)
    assert why in texts(drawn_ratio(plain, seeds, "grad_norm"))


def test_what_is_packed_into_one_file_is_compared_as_well(
    tmp_path: Path, plain: OpenedRecord
) -> None:
    other = nbp.open_run(record(tmp_path / "a.zarr", fc=5.0, from_step=30).location)
    packed = nbp.open_run(other.pack(tmp_path / "a.zarr.zip"))
    assert [one.step for one in parting(packed, plain, "grad_norm")] == [30]


@pytest.mark.slow
def test_a_live_run_is_compared_with_a_record_while_it_trains(tmp_path: Path) -> None:
    def train(run: nbp.Run, model: nn.Module, n: int, scale: float = 1.0) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        x = torch.ones(4, 3)
        for _ in range(n):
            optimizer.zero_grad()
            loss = scale * model(x).square().mean()
            loss.backward()
            run.log(loss=loss)
            optimizer.step()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as before:
        before.attach("*", "grad_norm", "every(1)")
        train(before, model, 40)
    other = nbp.open_run(tmp_path / "a.zarr")
    with nbp.watch(model, store=tmp_path / "b.zarr", probes=None) as run:
        run.attach("*", "grad_norm", "every(1)")
        search = PartingSearch(run, [other], "grad_norm")
        train(run, model, 5)
        assert list(search.found()) == []
        train(run, model, 25, scale=4.0)
        found = search.found()
        assert {one.module for one in found} == {"0", "1"}
        assert [one.step for one in found] == [5, 5]
        np.testing.assert_allclose([one.now for one in found], np.log10(4), atol=1e-5)
        cells = ratio(run, other, "grad_norm")
        assert cells is not None
        assert cells.apart.shape[1] >= 29  # the step that is open is not yet there
        assert align(run, other, by="loss").steps_there([29]).tolist() == [0]
