"""A thinned series against the series itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import UnknownNameError
from notebook_probe.record import OpenedRecord, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED, measured
from notebook_probe.record.format.reductions import SIZES
from notebook_probe.record.format.source import ChunkGrid, Floats, Source, Steps, Thinned
from notebook_probe.record.read.stored_level import StoredLevel
from notebook_probe.record.views.thinning import zoom
from notebook_probe.record.views.thinning.zoom import between, thin_stream
from notebook_probe.record.write.streams import levels as levels_module
from notebook_probe.record.write.streams import stream as stream_module
from notebook_probe.record.write.streams.pyramid import Pyramid, Totals
from tests.record.build import GRAD, LAW, new_writer


@pytest.fixture(autouse=True, scope="module")
def short_runs_have_levels_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zoom, "RAW_ROWS", 0)
        patch.setattr(levels_module, "FEWEST_BLOCKS", (1, 1, 1))
        yield


class Stream:
    """One series in memory with the pyramid of its first rows; a StreamView."""

    name = "every_1"
    modules = ("fc",)
    variables = (Variable("q"),)
    version: tuple[object, ...] = ()

    def __init__(self, steps: Steps, values: Floats, n_covered: int) -> None:
        self._steps, self._values = steps, values
        _, levels = Pyramid().fed(steps[:n_covered], values[:n_covered, None, None])
        self.levels: Mapping[int, StoredLevel] = {
            size: StoredLevel(size, _arrays(level))
            for size, level in zip(SIZES, levels, strict=True)
            if len(level)
        }

    @property
    def n_rows(self) -> int:
        return len(self._steps)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._steps[start:stop]

    times = steps

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._values[start:stop, None]

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return ChunkGrid((0,), 1)


class Array:
    chunks = (1, 1)

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]


def _arrays(level: Totals) -> dict[str, Array]:
    reduced = {f"q_{name}": Array(cells[:, 0]) for name, cells in level.arrays().items()}
    return {"step": Array(level.steps), "module": Array(np.array(["fc"])), **reduced}


def check(thinned: Thinned, steps: Steps, values: Floats, n_points: int) -> None:
    """Nothing that a picture of ``n_points`` could show was lost or made up."""
    known = measured(values)
    steps, values = steps[known], values[known]
    finite = np.isfinite(values)
    assert thinned.nonfinite.tolist() == steps[~finite].tolist()
    steps, values = steps[finite], values[finite]
    assert len(thinned.x) <= n_points
    if not len(values):
        assert not len(thinned.x)
        return
    assert (np.diff(thinned.x) >= 0).all()
    assert (thinned.x[0], thinned.y[0]) == (steps[0], values[0])
    assert (thinned.x[-1], thinned.y[-1]) == (steps[-1], values[-1])
    assert (thinned.y.min(), thinned.y.max()) == (values.min(), values.max())
    assert set(thinned.y) <= set(values.astype(float))
    if len(steps) <= n_points / 2:
        assert thinned.x.tolist() == steps.tolist()
        assert thinned.y.tolist() == values.tolist()


@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(0, 6000),
    n_points=st.integers(4, 200),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    covered=st.floats(0, 1),
    holes=st.lists(st.tuples(st.integers(0, 5999), st.integers(1, 900)), max_size=4),
    kind=st.sampled_from([NOT_MEASURED, MEASURED_NAN, np.float32(np.inf), np.float32(-np.inf)]),
)
@LAW
def test_no_extreme_no_end_and_no_loss_is_lost(
    seed: int,
    n_rows: int,
    n_points: int,
    ends: tuple[float, float],
    covered: float,
    holes: list[tuple[int, int]],
    kind: np.float32,
) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 4, n_rows))
    values = rng.normal(size=n_rows).astype(np.float32)
    for first, length in holes:
        values[first : first + length] = kind
    stream = Stream(steps, values, int(covered * n_rows))
    low, high = sorted(end * 3 * n_rows for end in ends)
    inside = (steps >= low) & (steps < high)
    first, stop = between(stream, low, high)
    assert inside[first:stop].all()
    assert stop - first == inside.sum()
    check(
        thin_stream(stream, "fc", "q", first, stop, n_points),
        steps[inside],
        values[inside],
        n_points,
    )


def test_the_extremes_of_every_pixel_are_near_where_they_happened() -> None:
    n_rows, n_points = 200_000, 1000
    steps, rng = np.arange(n_rows), np.random.default_rng(0)
    values = rng.normal(size=n_rows).astype(np.float32)
    thinned = thin_stream(Stream(steps, values, n_rows), "fc", "q", 0, n_rows, n_points)
    pixel = n_rows // (n_points // 2)
    for first in range(0, n_rows - 3 * pixel, pixel):
        here = (thinned.x >= first) & (thinned.x < first + 3 * pixel)
        inside = values[first + pixel : first + 2 * pixel]
        assert thinned.y[here].min() <= inside.min()
        assert thinned.y[here].max() >= inside.max()


def test_live_and_opened_thin_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
    steps, n_published = np.arange(25_000), 20_000
    values = np.sin(steps / 500).astype(np.float32)
    values[12_345], values[21_000], values[5_000:7_000] = 99, np.inf, NOT_MEASURED
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        for step, value in enumerate(values):
            stream.record(step, 0, np.array([[value]]))
            if step in (9_999, n_published - 1):
                assert writer.flush(60)
        assert writer.source.streams["every_1"].levels.keys() == {64, 1024, 16384}
        opened: Source = open_record(tmp_path / "a.zarr")
        for low, high in ((None, None), (10_000, 24_000), (12_300, 12_400.5), (9, 9)):
            inside = (steps >= (low or 0)) & (steps < (high or np.inf))
            thinned = writer.source.thinned("fc", "grad_norm", low, high, 100)
            check(thinned, steps[inside], values[inside], 100)
            inside &= steps < n_published
            thinned = opened.thinned("fc", "grad_norm", low, high, 100)
            check(thinned, steps[inside], values[inside], 100)


def test_a_long_series_is_thinned_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        for step in range(20_000):
            stream.record(step, 0, np.array([[step]], np.float32))
    record = open_record(tmp_path / "a.zarr")
    read: list[int] = []
    view = type(record.paths["scalars/every_1"])
    values = view.values

    def counted(self: Any, *args: Any) -> Floats:
        found = values(self, *args)
        read.append(found.size)
        return found

    monkeypatch.setattr(view, "values", counted)
    thinned = record.thinned("fc", "grad_norm", n_points=100)
    assert (thinned.y[0], thinned.y[-1]) == (0, 19_999)
    assert sum(read) <= 3 * 1024
    assert record.thinned("fc", "grad_norm", 10_000, 10_050, 100).y.tolist() == [
        *range(10_000, 10_050)
    ]


def test_what_two_schedules_measured_is_joined_first(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        for name, every in (("every_2", 2), ("every_3", 3)):
            stream = writer.stream(name)
            stream.extend(["fc"], [GRAD])
            for step in range(0, 60, every):
                stream.record(step, 0, np.array([[step]], np.float32))
        steps = sorted({*range(0, 60, 2), *range(0, 60, 3)})
        assert writer.source.thinned("fc", "grad_norm").x.tolist() == steps
        inner = [step for step in steps if 10 <= step < 20]
        assert writer.source.thinned("fc", "grad_norm", 10, 20).y.tolist() == inner


def test_a_wrong_name_or_too_few_points_is_refused(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        stream.record(0, 0, np.array([[1]], np.float32))
    record = OpenedRecord(tmp_path / "a.zarr")
    with pytest.raises(UnknownNameError, match="grad_norm"):
        record.thinned("fc", "grad_nor")
    with pytest.raises(UnknownNameError, match="fc"):
        record.thinned("f", "grad_norm")
    with pytest.raises(ValueError, match="n_out=3; at least 4"):
        record.thinned("fc", "grad_norm", n_points=3)
