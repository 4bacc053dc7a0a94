"""Reductions of blocks of rows, against float64 over everything at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED, measured
from notebook_probe.record.format.reductions import SIZES
from notebook_probe.record.format.source import Floats
from notebook_probe.record.write.streams.pyramid import Pyramid, Totals
from tests.record.build import LAW

NAN = np.uint32(0x7FC00000)


def oracle(values: Floats, size: int) -> dict[str, Floats]:
    """Block by block and cell by cell, in float64."""
    n_blocks, *shape = len(values) // size, *values.shape[1:]
    out = {name: np.full((n_blocks, *shape), NOT_MEASURED) for name in ("min", "max", "mean")}
    for block, *cell in np.ndindex(n_blocks, *shape):
        rows = values[(slice(block * size, (block + 1) * size), *cell)]
        known = rows[measured(rows)].astype(np.float64)
        if len(known):
            numbers = known[~np.isnan(known)]
            with np.errstate(invalid="ignore"):
                found = {
                    "min": numbers.min() if len(numbers) else np.nan,
                    "max": numbers.max() if len(numbers) else np.nan,
                    "mean": known.mean(),
                }
            for name, value in found.items():
                out[name][(block, *cell)] = MEASURED_NAN if np.isnan(value) else value
    return out


def fed(pieces: list[Floats]) -> list[dict[str, Floats]]:
    pyramid, step = Pyramid(), 0
    parts: list[list[Totals]] = [[] for _ in SIZES]
    for piece in pieces:
        pyramid, done = pyramid.fed(np.arange(step, step + len(piece)), piece)
        step += len(piece)
        for part, blocks in zip(parts, done, strict=True):
            part.append(blocks)
    levels = [Totals.after_each_other(part) for part in parts]
    for level, size in zip(levels, SIZES, strict=True):
        assert level.steps.tolist() == list(range(0, step - size + 1, size))
    return [level.arrays() for level in levels]


def same(found: dict[str, Floats], expected: dict[str, Floats]) -> None:
    for name, values in expected.items():
        assert found[name].dtype == np.float32
        if not len(values):
            assert not len(found[name])
            continue
        assert np.array_equal(measured(found[name]), measured(values)), name
        assert np.allclose(found[name], values, rtol=1e-6, atol=1e-6, equal_nan=True), name
        if name != "mean":
            assert np.array_equal(found[name], values, equal_nan=True)


special = st.sampled_from([NOT_MEASURED, MEASURED_NAN, np.float32("inf"), np.float32("-inf")])


@given(data=st.data(), n_rows=st.integers(0, 300), n_cuts=st.integers(0, 6))
@LAW
def test_blocks_are_those_of_all_rows_at_once_however_they_came(
    data: st.DataObject, n_rows: int, n_cuts: int
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = rng.normal(size=(n_rows, 2, 3)).astype(np.float32)
    for _ in range(data.draw(st.integers(0, 6)) if n_rows else 0):
        first = data.draw(st.integers(0, n_rows - 1))
        last = first + data.draw(st.sampled_from([1, 3, 64, 200]))
        variable, module = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 2))
        values[first:last, variable, module] = data.draw(special)
    cuts = sorted(data.draw(st.integers(0, n_rows)) for _ in range(n_cuts))
    for found, size in zip(fed(np.split(values, cuts)), SIZES, strict=True):
        same(found, oracle(values, size))


def test_every_level_is_that_of_the_rows_themselves() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40_000, 1, 2)).astype(np.float32)
    values[rng.random(values.shape) < 0.01] = NOT_MEASURED
    values[20_000, 0, 0] = MEASURED_NAN
    values[30_000:, 0, 1] = NOT_MEASURED
    pieces = np.split(values, np.sort(rng.integers(0, 40_000, 30)))
    for found, size in zip(fed(pieces), SIZES, strict=True):
        assert len(found["min"]) == 40_000 // size
        same(found, oracle(values, size))


def test_columns_added_later_hold_nothing_before() -> None:
    narrow, wide = np.ones((70, 1, 1), np.float32), np.full((60, 2, 3), 2, np.float32)
    by64 = fed([narrow, wide])[0]
    assert by64["mean"].shape == (2, 2, 3)
    assert by64["mean"][:, 0, 0].tolist() == [1, (6 + 2 * 58) / 64]
    assert by64["min"][1, 0, 0] == 1
    assert not measured(by64["mean"][0]).ravel()[1:].any()
    assert (by64["max"][1].ravel()[1:] == 2).all()


def test_a_mean_is_finite_where_all_that_was_measured_is() -> None:
    """Readers rely on it to find the blocks in which something was not finite."""
    values = np.full((64, 1, 4), 3e38, np.float32)
    values[3, 0, 1:] = MEASURED_NAN, np.inf, NOT_MEASURED
    by64 = fed([values])[0]
    assert np.isfinite(by64["mean"][0, 0]).tolist() == [True, False, False, True]
    assert np.array_equal(by64["max"][0, 0], np.array([3e38, 3e38, np.inf, 3e38], np.float32))


def test_parts_side_by_side_go_on_as_the_whole() -> None:
    steps = np.arange(100)
    values = np.random.default_rng(1).normal(size=(100, 2, 3)).astype(np.float32)
    whole, _ = Pyramid().fed(steps, values)
    variables = []
    for variable in range(2):
        modules = [Pyramid().fed(steps, values[:, [variable]][:, :, [m]])[0] for m in range(3)]
        variables.append(Pyramid.side_by_side(modules, axis=2))
    parts = Pyramid.side_by_side(variables, axis=1)
    rest = np.random.default_rng(2).normal(size=(30, 2, 3)).astype(np.float32)
    later = np.arange(100, 130)
    pairs = zip(parts.fed(later, rest)[1], whole.fed(later, rest)[1], strict=True)
    for found, expected in pairs:
        assert found.steps.tolist() == expected.steps.tolist()
        same(found.arrays(), expected.arrays())
