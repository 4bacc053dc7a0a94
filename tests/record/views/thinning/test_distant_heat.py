"""Heat maps of long runs, of which the pyramid is read: the same picture as of every row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from notebook_probe.record import RecordWriter, Source, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.read.stored_level import StoredLevel
from notebook_probe.record.views.thinning import heat_grid
from notebook_probe.record.views.thinning.heat_grid import Grid, HeatGrid
from notebook_probe.record.write.streams import levels

N_ROWS, N_COLUMNS = 5000, 8
MODULES = ("a", "b", "late")


@pytest.fixture
def long_record(tmp_path: Path) -> Path:
    """A run with a NaN, a gap of whole blocks, and a module that is attached later."""
    values = np.random.default_rng(0).lognormal(size=(N_ROWS, 3)).astype(np.float32)
    values[700, 0] = MEASURED_NAN
    values[2048:2304, 1] = NOT_MEASURED
    with RecordWriter(tmp_path / "a.zarr", title="long", modules=[], flush_s=3600) as writer:
        stream = writer.stream("every_1")
        stream.extend(MODULES[:2], [Variable("norm")])
        for step, row in enumerate(values):
            if step == 47 * 64:  # of a block that is measured in part the mean weighs too much
                stream.extend(MODULES[2:])
            stream.record(step, step, row[None, : stream.shape[1]])
    return tmp_path / "a.zarr"


def drawn(source: Source, far_rows: int, window: tuple[float, float] | None = None) -> Grid:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(heat_grid, "FAR_ROWS", far_rows)
        reduced = HeatGrid("norm", N_COLUMNS, window)
        reduced.read_new(source)
    cells = reduced.grid(MODULES)
    assert cells is not None
    return cells


@pytest.fixture
def n_blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    reduced = StoredLevel.reduced

    def counted(self: StoredLevel, *given: object) -> object:
        counts.append(self.size)
        return reduced(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(StoredLevel, "reduced", counted)
    return counts


@pytest.mark.parametrize("window", [None, (100.0, 4700.0), (1000.5, np.inf)])
def test_the_picture_is_that_of_all_rows(
    long_record: Path, window: tuple[float, float] | None, n_blocks_read: list[int]
) -> None:
    record = open_record(long_record)
    expected = drawn(record, far_rows=N_ROWS, window=window)
    assert not n_blocks_read
    cells = drawn(record, far_rows=100, window=window)
    assert n_blocks_read == [64]
    assert (cells.modules, cells.first, cells.size) == (MODULES, expected.first, expected.size)
    np.testing.assert_array_equal(cells.state, expected.state)
    whole = expected.state == heat_grid.MEASURED
    np.testing.assert_array_equal(cells.maximum[whole], expected.maximum[whole])
    np.testing.assert_allclose(cells.mean[whole], expected.mean[whole], rtol=1e-5)


def test_a_run_that_grows_is_read_on_row_by_row(tmp_path: Path, n_blocks_read: list[int]) -> None:
    with RecordWriter(tmp_path / "a.zarr", title="long", modules=[], flush_s=3600) as writer:
        stream = writer.stream("every_1")
        stream.extend(["a"], [Variable("norm")])
        reduced = HeatGrid("norm", N_COLUMNS)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(heat_grid, "FAR_ROWS", 100)
            patched.setattr(levels, "FEWEST_BLOCKS", (1, 1, 1))
            for stop in (3000, 3010, 5000):
                for step in range(stream.n_rows, stop):
                    stream.record(step, step, np.full((1, 1), step, np.float32))
                assert writer.flush(60)
                reduced.read_new(open_record(tmp_path / "a.zarr"))
        cells = reduced.grid(["a"])
    assert n_blocks_read == [64]
    assert cells is not None
    for column, (mean, most) in enumerate(zip(cells.mean[0], cells.maximum[0], strict=True)):
        first = cells.first + column * cells.size
        last = min(first + cells.size, 5000) - 1
        assert (mean, most) == ((first + last) / 2, last)
