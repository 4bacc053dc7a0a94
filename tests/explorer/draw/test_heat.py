"""Heat frames against means taken straight from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.measured_steps import CARRIED, GAP
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.thinning.standing import ENDED
from tests.explorer.fakes import FakeSource, FakeStream


def drawn(
    source: FakeSource, selection: PanelSelection, view: Heat | None = None, width: int = 700
) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]:
    """The message, and mean, state and maximum as (row, column)."""
    frame = (view or Heat()).frame(source, selection, width)
    assert frame is not None
    message, buffers = frame
    shape = (len(message["rows"]), message["columns"])
    mean, state, maximum = (
        np.frombuffer(buffer, dtype).reshape(shape)
        for buffer, dtype in zip(buffers[:3], ("<f4", "u1", "<f4"), strict=True)
    )
    return dict(message), mean, state, maximum


def column_steps(message: dict[str, Any]) -> np.ndarray:
    """First step of every column and the step after the last, as wire.py defines them."""
    first, last, n = message["first_step"], message["last_step"], message["columns"]
    return first + np.arange(n + 1) * (last + 1 - first) / n


HOME = PanelSelection(home="norm")


@pytest.mark.parametrize("n_rows", [1, 5, 500, 3000, 10_000])
def test_columns_are_means_of_equal_numbers_of_steps(n_rows: int) -> None:
    values = np.random.default_rng(n_rows).lognormal(size=(n_rows, 2)).astype(np.float32)
    stream = FakeStream("every_1", ["a", "b"], ["norm"])
    stream.append(range(n_rows), norm=values)
    message, mean, state, maximum = drawn(FakeSource(stream), HOME)
    edges = column_steps(message)
    assert message["rows"] == ["a", "b"]
    assert message["columns"] <= 700
    assert message["columns"] >= min(n_rows, 175)
    assert not state.any()
    for column in range(message["columns"]):
        rows = values[int(edges[column]) : int(edges[column + 1])].astype(np.float64)
        np.testing.assert_allclose(mean[:, column], rows.mean(axis=0), rtol=1e-6)
        np.testing.assert_array_equal(maximum[:, column], rows.max(axis=0))
    assert message["low"] == pytest.approx(mean.min())
    assert message["high"] == pytest.approx(maximum.max())
    assert message["highest"] == maximum.max()


def test_a_grid_that_grew_row_by_row_is_the_grid_of_all_rows() -> None:
    values = np.random.default_rng(0).lognormal(size=(3000, 2)).astype(np.float32)
    stream, view = FakeStream("every_1", ["a", "b"], ["norm"]), Heat()
    source = FakeSource(stream)
    for start in range(0, 3000, 37):
        stream.append(range(start, min(start + 37, 3000)), norm=values[start : start + 37])
        frame = drawn(source, HOME, view)
    message, mean, _, _ = drawn(source, HOME)
    assert frame[0] == message
    np.testing.assert_allclose(frame[1], mean, rtol=1e-6)
    assert stream.n_values_read == 2 * values.size


def test_what_was_not_measured_is_told_from_what_was_not_finite() -> None:
    values = np.ones((100, 3), np.float32)
    values[:40, 0] = np.nan
    values[70:, 1] = MEASURED_NAN
    values[50, 2] = -np.inf
    stream = FakeStream("every_1", ["a", "b", "c"], ["norm"])
    stream.append(range(100), norm=values)
    message, _, state, _ = drawn(FakeSource(stream), HOME)
    assert message["columns"] == 100
    assert set(np.flatnonzero(state[0] == 1)) == set(range(40))
    assert set(np.flatnonzero(state[1] == 2)) == set(range(70, 100))
    assert set(np.flatnonzero(state[2] == 2)) == {50}
    assert np.sum(state == 1) == 40


def test_rows_come_from_the_streams_that_hold_them_in_definition_order() -> None:
    fast, slow = (
        FakeStream("every_1", ["c"], ["norm"]),
        FakeStream("every_10", ["a", "b"], ["norm"]),
    )
    fast.append(range(100), norm=3.0)
    slow.append(range(0, 100, 10), norm=np.column_stack([np.arange(10), np.full(10, np.nan)]))
    message, mean, state, _ = drawn(FakeSource(fast, slow), HOME)
    assert message["rows"] == ["a", "c"]
    assert set(state.ravel().tolist()) == {0, CARRIED}
    assert not state[:, ::10].any(), "between two rows of a slow schedule its value stands"
    np.testing.assert_array_equal(mean[0], np.repeat(np.arange(10.0), 10))
    np.testing.assert_array_equal(mean[1], np.full(100, 3.0))


def test_a_module_that_changed_its_schedule_is_one_row() -> None:
    before, after = FakeStream("every_1", ["a"], ["norm"]), FakeStream("every_5", ["a"], ["norm"])
    before.append(range(50), norm=1.0)
    after.append(range(50, 100, 5), norm=2.0)
    message, mean, state, _ = drawn(FakeSource(before, after), HOME)
    assert message["rows"] == ["a"]
    np.testing.assert_array_equal(mean[0], np.repeat([1.0, 2.0], [50, 46]))
    assert set(np.flatnonzero(state == 0)) == {*range(50), *range(50, 100, 5)}
    assert not (state % CARRIED).any()


def test_a_long_pause_of_a_schedule_is_hatched_only_from_where_it_was_detached() -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    stream.append([*range(20), *range(60, 80)], norm=1.0)
    source = FakeSource(stream)
    _, mean, state, _ = drawn(source, HOME)
    assert set(np.flatnonzero(state[0])) == set(range(20, 60))
    assert (state[0, 20:60] == CARRIED).all()
    assert (mean == 1).all()
    source.events = (Event(30, 0, "detach", "norm at a, every(1)"),)
    _, _, state, _ = drawn(source, HOME)
    assert set(np.flatnonzero(state[0] == CARRIED)) == set(range(20, 30))
    assert set(np.flatnonzero(state[0] == 1 + GAP * ENDED)) == set(range(30, 60))


def test_a_zoomed_map_reads_its_own_rows_only() -> None:
    values = np.arange(20_000.0)[:, None]
    stream, view = FakeStream("every_1", ["a"], ["norm"]), Heat()
    stream.append(range(20_000), norm=values)
    source, zoomed = FakeSource(stream), PanelSelection(home="norm", window=(10_000.0, 10_099.0))
    message, mean, _, _ = drawn(source, zoomed, view)
    assert (message["first_step"], message["last_step"], message["columns"]) == (
        10_000,
        10_099,
        100,
    )
    np.testing.assert_array_equal(mean[0], np.arange(10_000, 10_100))
    assert stream.n_values_read == 100
    stream.append(range(20_000, 20_500), norm=0.0)
    assert drawn(source, zoomed, view)[0] == message
    assert stream.n_values_read == 100


def test_logarithmic_limits_are_those_of_the_positive_values() -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    stream.append(range(4), norm=np.array([[-1.0], [0.0], [2.0], [8.0]]))
    source = FakeSource(stream)
    message = drawn(source, PanelSelection(home="norm", log_heat=True))[0]
    assert (message["low"], message["high"]) == pytest.approx((2.0, 8.0))
    message = drawn(source, PanelSelection(home="norm", log_heat=False))[0]
    assert (message["low"], message["lowest"]) == (-8.0, -1.0), "as far from 0 on both sides"


def test_values_without_a_positive_one_have_no_logarithmic_limits() -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    stream.append(range(4), norm=-1.0)
    message = drawn(FakeSource(stream), PanelSelection(home="norm", log_heat=True))[0]
    assert (message["low"], message["high"]) == (None, None)
    assert (message["lowest"], message["highest"]) == (-1.0, -1.0)


def test_nothing_is_drawn_before_the_first_value() -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    assert Heat().frame(FakeSource(stream), HOME, 700) is None
    assert Heat().frame(FakeSource(stream), PanelSelection(), 700) is None


def test_a_column_that_was_added_later_joins_the_map() -> None:
    stream, view = FakeStream("every_1", ["a"], ["norm"]), Heat()
    source = FakeSource(stream)
    stream.append(range(10), norm=1.0)
    drawn(source, HOME, view)
    stream.modules = ("a", "b")
    stream._values["norm"] = np.pad(
        stream._values["norm"], ((0, 0), (0, 1)), constant_values=np.nan
    )
    stream.append(range(10, 20), norm=2.0)
    message, _, state, _ = drawn(source, HOME, view)
    assert message["rows"] == ["a", "b"]
    assert set(np.flatnonzero(state[1])) == set(range(10))


def test_rows_of_calls_stand_below_their_module() -> None:
    stream = FakeStream("every_1", ["a[0]", "a[1]", "b", "a", "c.weight"], ["norm"])
    stream.append([0], norm=[[1.0, 2.0, 3.0, 4.0, 5.0]])
    message, mean, _, _ = drawn(FakeSource(stream), HOME)
    assert message["rows"] == ["a", "a[0]", "a[1]", "b", "c.weight"]
    assert mean[:, 0].tolist() == [4.0, 1.0, 2.0, 3.0, 5.0]


def test_a_divergence_does_not_flatten_what_was_before_it() -> None:
    random = np.random.default_rng(0)
    values = random.lognormal(-3, 0.5, size=(500, 2)).astype(np.float32)
    values[460:] = np.geomspace(1, 1e16, 40)[:, None]
    values[10] = 1e-16
    stream = FakeStream("every_1", ["a", "b"], ["norm"])
    stream.append(range(500), norm=values)
    message = drawn(FakeSource(stream), HOME)[0]
    assert message["low"] <= values[20:460].min()
    assert message["high"] >= values[20:460].max()
    assert message["high"] / message["low"] < 1e6
    assert message["lowest"] == pytest.approx(1e-16)
    assert message["highest"] == pytest.approx(1e16)


@pytest.mark.parametrize(
    ("quantity", "values", "colours", "log"),
    [
        ("norm", [0.1, 10.0], "value", True),
        ("dead_fraction", [0.1, 0.4], "share", False),
        ("output_mean", [-0.1, 0.4], "sign", False),
    ],
)
def test_colours_say_what_a_quantity_is(
    quantity: str, values: list[float], colours: str, log: bool
) -> None:
    stream = FakeStream("every_1", ["a", "b"], [quantity])
    stream.append([0], **{quantity: np.array([values])})
    message = drawn(FakeSource(stream), PanelSelection(home=quantity))[0]
    assert (message["colours"], message["log"]) == (colours, log)
    if colours == "share":
        assert message["low"] == 0
    if colours == "sign":
        assert message["low"] == -message["high"] == pytest.approx(-0.4)


def test_rows_are_those_of_a_selection_and_of_what_lies_below() -> None:
    names = ["a", "a.b", "a.b[0]", "ab", "c"]
    stream = FakeStream("every_1", names, ["norm"])
    stream.append(range(3), norm=[1.0, 2.0, 3.0, 4.0, 5.0])
    source = FakeSource(stream, modules=["a", "a.b", "ab", "c"])
    message, mean, *_ = drawn(source, PanelSelection(home="norm", rows=("a", "c")))
    assert message["rows"] == ["a", "a.b", "a.b[0]", "c"]
    np.testing.assert_array_equal(mean[:, 0], [1.0, 2.0, 3.0, 5.0])
    assert (message["low"], message["high"]) == (1.0, 5.0)
    other, *_ = drawn(source, PanelSelection(home="norm", rows=("nowhere",)))
    assert other["rows"] == names


def test_a_folded_module_is_one_row_with_the_mean_and_the_largest_of_all_below() -> None:
    names = ["a", "a.b", "a.b.c", "d", "e"]
    values = np.random.default_rng(3).lognormal(size=(400, 5)).astype(np.float32)
    values[:, 1] = np.nan  # not measured
    values[7, 2] = MEASURED_NAN
    stream = FakeStream("every_1", names, ["norm"])
    stream.append(range(400), norm=values)
    source = FakeSource(stream, modules=["a", "a.b", "a.b.c", "d", "e"])
    plain, whole, _, most = drawn(source, PanelSelection(home="norm"))
    message, mean, state, maximum = drawn(source, PanelSelection(home="norm", folds=("a", "a.b")))
    assert (plain["rows"], message["rows"]) == (["a", "a.b.c", "d", "e"], ["a", "d", "e"])
    fine = [0, 1, 2, 3, 4, 5, 6, *range(8, 400)]
    np.testing.assert_allclose(mean[0, fine], whole[:2, fine].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(maximum[0, fine], most[:2, fine].max(axis=0))
    np.testing.assert_array_equal(mean[1:], whole[2:])
    assert state[0, 7] == 2
    assert not state[1:].any()


@pytest.mark.slow
def test_ten_thousand_modules_fold_to_a_row_each_of_those_above() -> None:
    names = [f"block{k // 100}.layer{k % 100}" for k in range(10_000)]
    stream = FakeStream("every_1", names, ["norm"])
    stream.append(range(50), norm=np.ones((50, 10_000), np.float32))
    source = FakeSource(stream, modules=[*dict.fromkeys(n.split(".")[0] for n in names), *names])
    folds = tuple(f"block{k}" for k in range(100))
    message, mean, state, _ = drawn(source, PanelSelection(home="norm", folds=folds))
    assert message["rows"] == [*folds]
    assert (mean == 1).all()
    assert not state.any()
