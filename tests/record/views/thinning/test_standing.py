"""Cells of a heat map between two measurements, against a forward fill of the rows by pandas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.thinning import heat_grid
from notebook_probe.record.views.thinning.heat_grid import (
    LOST,
    MEASURED,
    UNMEASURED,
    Grid,
    HeatGrid,
)
from notebook_probe.record.views.thinning.run_extent import RunExtent
from notebook_probe.record.views.thinning.standing import ENDED, NO_VALUE
from tests.explorer.fakes import FakeSource, FakeStream
from tests.record.build import LAW

MODULES = ("a", "b", "c", "d")
Values = npt.NDArray[np.float32]


def source_of(
    values: Values, every: Sequence[int] | None = None, events: Sequence[Event] = ()
) -> FakeSource:
    """A run that logs a loss at every step, and norms in the same stream."""
    steps = range(len(values)) if every is None else every
    stream = FakeStream("every_1", MODULES, ["norm", "loss"])
    stream.append(steps, norm=values, loss=1.0)
    source = FakeSource(stream, modules=MODULES)
    source.events = tuple(events)
    return source


def drawn(
    source: FakeSource, n_columns: int = 700, window: tuple[float, float] | None = None
) -> Grid | None:
    heat = HeatGrid("norm", n_columns, window)
    heat.read_new(source)
    return heat.grid(MODULES)


def recorded(values: Values) -> pd.DataFrame:
    """Values by step and module; measured NaN as infinite, which a fill does not skip."""
    bits = values.view(np.uint32)
    lost = np.isinf(values) | (np.isnan(values) & (bits != np.uint32(0x7FC00000)))
    return pd.DataFrame(np.where(lost, np.inf, values.astype(np.float64)), columns=list(MODULES))


def attached(values: Values, detached: dict[str, int], is_turn: bool) -> pd.DataFrame:
    """Number of each attachment: a fill must not go from one to the next."""
    known = recorded(values).notna()
    ends = pd.DataFrame(0, index=known.index, columns=known.columns)
    for module, step in detached.items():
        ends.loc[step:, module] += 1
    if not is_turn:  # a step with some value is one at which all were due
        gaps = ~known & known.any(axis=1).to_numpy()[:, None]
        ends += gaps.cumsum()
    return ends


def filled(values: Values, detached: dict[str, int], is_turn: bool) -> pd.DataFrame:
    """What stands at each step: a forward fill within each attachment."""
    known, ends = recorded(values), attached(values, detached, is_turn)
    return pd.DataFrame(
        {name: known[name].groupby(ends[name].to_numpy()).ffill() for name in MODULES}
    )


NOTHING = [np.nan] * 4
CELLS = st.sampled_from([1.0, 2.0, 3.5, np.inf, *NOTHING])


@st.composite
def runs(draw: st.DrawFn) -> Values:
    """Rows that are often empty, as a stretched schedule leaves them."""
    n_steps = draw(st.integers(1, 60))
    rows = draw(
        st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=n_steps, max_size=n_steps)
    )
    values = np.array(rows, np.float32)
    lost = draw(st.lists(st.integers(0, n_steps - 1), max_size=3))
    values[lost, 0] = MEASURED_NAN
    measured = draw(st.lists(st.booleans(), min_size=n_steps, max_size=n_steps))
    values[~np.array(measured)] = NOT_MEASURED
    nan = np.isnan(values) & (values.view(np.uint32) != MEASURED_NAN.view(np.uint32))
    values[nan] = NOT_MEASURED
    return values


DETACHED = st.dictionaries(st.sampled_from(MODULES), st.integers(1, 59))


def detach_events(detached: dict[str, int]) -> list[Event]:
    return [
        Event(step, 0, "detach", "norm", json.dumps({"ended": {"norm": [module]}}))
        for module, step in detached.items()
    ]


@LAW
@given(runs(), DETACHED)
def test_a_column_of_one_step_is_the_forward_fill_of_what_is_attached(
    values: Values, detached: dict[str, int]
) -> None:
    grid = drawn(source_of(values, events=detach_events(detached)))
    expected = filled(values, detached, is_turn=False)
    if grid is None:
        assert expected.isna().all(axis=None)
        return
    assert (grid.first, grid.end, grid.size) == (0, len(values) - 1, 1)
    for row, module in enumerate(grid.modules):
        wanted = expected[module].to_numpy()
        np.testing.assert_array_equal(grid.state[row] == UNMEASURED, np.isnan(wanted))
        np.testing.assert_array_equal(grid.state[row] == LOST, np.isinf(wanted))
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(grid.mean[row, finite], wanted[finite])
        np.testing.assert_array_equal(grid.maximum[row, finite], wanted[finite])


@LAW
@given(runs(), DETACHED, st.sampled_from([2, 5, 16, 700]), st.booleans(), st.integers(0, 40))
def test_a_drawn_value_is_the_one_recorded_at_the_step_that_is_named(
    values: Values, detached: dict[str, int], n_columns: int, is_turn: bool, start: int
) -> None:
    events = [*detach_events(detached), *([Event(0, 0, "budget", "")] if is_turn else [])]
    source = source_of(values, events=events)
    known = recorded(values)
    for window in (None, (float(start), 59.0)):
        grid = drawn(source, n_columns, window)
        if grid is None:
            continue
        starts = grid.first + grid.size * np.arange(grid.mean.shape[1])
        for row, module in enumerate(grid.modules):
            for column, step in enumerate(grid.measured[row].tolist()):
                if step < 0:
                    assert grid.state[row, column] == UNMEASURED
                    continue
                assert step <= min(starts[column] + grid.size - 1, grid.end)
                assert not np.isnan(known[module][step])
                if grid.carried[row, column]:
                    value = known[module][step]
                    shown = np.inf if grid.state[row, column] == LOST else grid.mean[row, column]
                    assert shown == value
                    later = known[module][step + 1 : starts[column] + grid.size]
                    assert later.isna().all(), "it is the latest"


@LAW
@given(runs(), st.integers(1, 30))
def test_a_map_that_grows_and_a_window_are_the_map_of_all_steps(values: Values, part: int) -> None:
    whole = drawn(source_of(values, events=[Event(10, 0, "budget", "")]))
    stream = FakeStream("every_1", MODULES, ["norm", "loss"])
    source = FakeSource(stream, modules=MODULES)
    source.events = (Event(10, 0, "budget", ""),)
    heat = HeatGrid("norm", 700)
    for start in range(0, len(values), part):
        rows = values[start : start + part]
        stream.append(range(start, start + len(rows)), norm=rows, loss=1.0)
        heat.read_new(source)
    grown = heat.grid(MODULES)
    if whole is None:
        assert grown is None
        return
    assert grown is not None
    np.testing.assert_array_equal(grown.state, whole.state)
    np.testing.assert_array_equal(grown.measured, whole.measured)
    np.testing.assert_array_equal(grown.mean, whole.mean)


def in_turns(n_steps: int, n_groups: int = 4) -> Values:
    """Every second step one of the modules is measured, from step 20 on."""
    values = np.full((n_steps, 4), NOT_MEASURED)
    values[:20] = np.arange(20.0, dtype=np.float32)[:, None]
    for turn, step in enumerate(range(20, n_steps, 2)):
        values[step, turn % n_groups] = step
    return values


BUDGET = Event(20, 0, "budget", "measured from here on is a part of the modules")


def test_modules_that_are_measured_in_turns_have_no_holes() -> None:
    values = in_turns(100)
    grid = drawn(source_of(values, events=[BUDGET]))
    assert grid is not None
    assert (grid.state == MEASURED).all()
    expected = filled(values, {}, is_turn=True)
    np.testing.assert_array_equal(grid.mean, expected.to_numpy().T)
    np.testing.assert_array_equal(grid.measured[:, 20:], grid.mean[:, 20:])


def test_without_a_budget_a_step_that_passes_a_module_over_is_a_gap_of_it() -> None:
    values = np.ones((30, 4), np.float32)
    values[10:15, 2] = NOT_MEASURED
    grid = drawn(source_of(values))
    assert grid is not None
    assert set(np.flatnonzero(grid.state[2])) == set(range(10, 15))
    assert set(np.flatnonzero(grid.gap[2] == NO_VALUE)) == set(range(10, 15))
    assert not grid.state[[0, 1, 3]].any()


def test_with_turns_a_complete_step_shows_which_module_did_not_run() -> None:
    values = in_turns(100)
    values[60] = 60
    values[60:, 2] = NOT_MEASURED
    grid = drawn(source_of(values, events=[BUDGET]))
    assert grid is not None
    assert set(np.flatnonzero(grid.state[2] == UNMEASURED)) == set(range(60, 100))
    assert (grid.state[[0, 1, 3]] == MEASURED).all()


def test_a_window_between_two_measurements_shows_the_value_before_it() -> None:
    values = np.full((300, 4), NOT_MEASURED)
    values[::128] = np.array([[1, 2, 3, 4]]) * np.array([[1], [10], [100]], np.float32)
    source = source_of(values)
    grid = drawn(source, window=(200.0, 250.0))
    assert grid is not None
    assert (grid.first, grid.end) == (200, 250)
    np.testing.assert_array_equal(grid.mean, np.repeat([[10], [20], [30], [40]], 51, axis=1))
    assert (grid.measured == 128).all()
    assert drawn(source, window=(400.0, 500.0)) is None, "the run is over at 299"


def test_a_slow_stream_of_its_own_reaches_to_the_last_step_of_the_run() -> None:
    slow = FakeStream("every_50", ["a", "b"], ["norm"])
    slow.append([0, 50, 100], norm=[[1, 2], [3, 4], [5, 6]])
    fast = FakeStream("every_1", ["(root)"], ["loss"])
    fast.append(range(150), loss=1.0)
    for n_columns, end in ((700, 149), (8, 149)):
        grid = drawn(FakeSource(slow, fast), n_columns)
        assert grid is not None
        assert grid.end == end
        assert (grid.state == MEASURED).all()
    beyond = drawn(FakeSource(slow, fast), window=(120.0, 400.0))
    assert beyond is not None
    assert (beyond.first, beyond.end) == (120, 149)
    assert (beyond.measured == 100).all()


def test_nothing_stands_over_a_resume() -> None:
    values = np.full((60, 4), NOT_MEASURED)
    values[[0, 16, 48]] = 1.0
    grid = drawn(source_of(values, events=[Event(30, 0, "resume", "training continues")]))
    assert grid is not None
    assert set(np.flatnonzero(grid.state[0])) == set(range(30, 48))
    assert set(np.flatnonzero(grid.gap[0] == ENDED)) == set(range(30, 48))


@pytest.mark.parametrize(
    ("event", "ended"),
    [
        (Event(5, 0, "detach", "norm at a, b, every(1)"), ["a", "b"]),
        (Event(5, 0, "detach", "loss, norm at a, x1, x2, x3, x4, x5 and 2 more, every(1)"), "all"),
        (Event(5, 0, "detach", "loss at a, every(1)"), []),
        (Event(5, 0, "detach", "norm at a", '{"ended": {"norm": ["c"]}}'), ["c"]),
        (Event(5, 0, "detach", "norm at a", '{"ended": {"norm": null}}'), "all"),
        (Event(5, 0, "detach", "norm at a", '{"ended": {}}'), []),
        (Event(5, 0, "detach", "norm at a, every(1)", "[1]"), ["a"]),
        (Event(5, 0, "attach", "norm at a, every(1)"), []),
    ],
)
def test_an_event_ends_the_series_that_it_names(event: Event, ended: list[str] | str) -> None:
    modules = ["a", "a[0]", "b", "c"]
    steps = RunExtent.read(9, [event]).end_steps("norm", modules, np.arange(10))
    found = [] if steps is None else [modules[k] for k in np.flatnonzero(steps[:, -1] >= 0)]
    wanted = modules if ended == "all" else [m for m in modules if m.partition("[")[0] in ended]
    assert found == wanted
    if steps is not None:
        assert set(steps[:, :5].ravel().tolist()) == {-1}


def test_of_a_long_run_the_rows_are_read_of_what_stands(tmp_path: Path) -> None:
    """A quantity at every 512th of 5,000 steps, of which the pyramid has blocks of 64."""
    n_steps, n_columns = 5000, 20
    values = np.full((n_steps, 2), NOT_MEASURED)
    measured = np.arange(7, n_steps, 512)
    values[measured] = np.arange(len(measured) * 2, dtype=np.float32).reshape(-1, 2)
    with RecordWriter(tmp_path / "a.zarr", title="long", modules=[], flush_s=3600) as writer:
        stream = writer.stream("every_1")
        stream.extend(["a", "b"], [Variable("norm"), Variable("loss")])
        for step, row in enumerate(values):
            stream.record(step, step, np.array([row, [1.0, 1.0]], np.float32))
    record = open_record(tmp_path / "a.zarr")
    grids = []
    for far_rows in (n_steps, 100):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(heat_grid, "FAR_ROWS", far_rows)
            heat = HeatGrid("norm", n_columns)
            heat.read_new(record)
        grids.append(heat.grid(["a", "b"]))
    plain, far = grids
    assert plain is not None
    assert far is not None
    assert far.carried.any()
    np.testing.assert_array_equal(far.state, plain.state)
    np.testing.assert_array_equal(far.mean, plain.mean)
    np.testing.assert_array_equal(far.measured[far.carried], plain.measured[far.carried])


def test_modules_that_a_budget_measures_less_often_than_most_keep_their_values() -> None:
    """Half of eight modules are measured at every step by hand, one more by a rule."""
    names = tuple("abcdefgh")
    values = np.full((80, 8), NOT_MEASURED)
    values[:, :5] = np.arange(80.0, dtype=np.float32)[:, None]
    values[::16] = np.arange(80.0, dtype=np.float32)[::16, None]
    stream = FakeStream("every_1", names, ["norm"])
    stream.append(range(80), norm=values)
    source = FakeSource(stream, modules=names)
    source.events = (Event(0, 0, "budget", ""),)
    heat = HeatGrid("norm", 700)
    heat.read_new(source)
    grid = heat.grid(names)
    assert grid is not None
    assert (grid.state == MEASURED).all()
    np.testing.assert_array_equal(grid.measured[7], np.arange(80) // 16 * 16)
