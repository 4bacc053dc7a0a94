"""Planes of paths against numpy's singular value decomposition, and random ones by their law."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.errors import CheckpointError, UnreadableError
from notebook_probe.summary.landscape.planes import result_plane, train_plane
from notebook_probe.summary.landscape.settings import Method
from notebook_probe.summary.landscape.snapshot import ModelSnapshot
from tests.summary.landscape.paths import SIZES, Array, flat, snapshots, walk

METHODS: list[Method] = ["svd", "mindspore"]


def by_svd(points: list[Array]) -> tuple[Array, Array, Array]:
    """Both directions, and the path in them; numpy's, as the formula says."""
    differences = np.array(points) - points[-1]
    _, _, axes = np.linalg.svd(differences, full_matrices=False)
    signs = np.where(differences[0] @ axes[:2].T < 0, -1.0, 1.0)
    first, second = signs[:, None] * axes[:2]
    return first, second, differences @ np.stack([first, second], axis=1)


def by_mindspore(points: list[Array]) -> tuple[Array, Array, Array]:
    """As a data matrix with a row for each parameter, whose columns are centred."""
    differences = np.array(points) - points[-1]
    table = differences.T - differences.T.mean(axis=0)
    left, sizes, _ = np.linalg.svd(table, full_matrices=False)
    components = (left * sizes)[:, :2]
    components *= np.sign(components[np.abs(components).argmax(axis=0), [0, 1]])
    components *= -1
    edges = np.cumsum(SIZES)[:-1]
    own = np.split(points[-1], edges)
    for column in range(2):
        parts = np.split(components[:, column], edges)
        longer = [
            part * np.linalg.norm(weight) / np.linalg.norm(part)
            for part, weight in zip(parts, own, strict=True)
        ]
        components[:, column] = np.concatenate(longer)
    places, *_ = np.linalg.lstsq(components, differences.T, rcond=None)
    return components[:, 0], components[:, 1], places.T


ORACLES = {"svd": by_svd, "mindspore": by_mindspore}


@pytest.mark.parametrize("n", [3, 4, 10])
@pytest.mark.parametrize("method", METHODS)
def test_the_plane_and_the_path_are_numpys(method: Method, n: int) -> None:
    points = walk(n, n)
    plane = train_plane(snapshots(points), 7, method)
    first, second, places = ORACLES[method](points)
    assert plane.path is not None
    np.testing.assert_allclose(flat(plane.first), first, atol=1e-10)
    np.testing.assert_allclose(flat(plane.second), second, atol=1e-10)
    np.testing.assert_allclose(plane.path.places, places, atol=1e-10)
    assert plane.path.numbers == tuple(range(1, n + 1))
    assert plane.path.places[-1].tolist() == [0.0, 0.0], "the last one is the origin"


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25)
@given(seed=st.integers(0, 999), n=st.integers(3, 6), size=st.integers(3, 12))
def test_axes_go_a_fifth_of_the_range_beyond_the_path(
    method: Method, seed: int, n: int, size: int
) -> None:
    plane = train_plane(snapshots(walk(seed, n)), size, method)
    assert plane.path is not None
    for places, axis in zip(plane.path.places.T, (plane.grid.xs, plane.grid.ys), strict=True):
        reach = np.ptp(places)
        want = np.linspace(places.min() - 0.2 * reach, places.max() + 0.2 * reach, size)
        np.testing.assert_allclose(axis, want, rtol=1e-12, atol=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(3, 6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_directions_of_the_plane_are_orthogonal_and_of_length_one_in_any_unit(
    seed: int, n: int, scale: float
) -> None:
    plane = train_plane(snapshots(walk(seed, n, scale)), 3)
    pair = np.stack([flat(plane.first), flat(plane.second)])
    np.testing.assert_allclose(pair @ pair.T, np.eye(2), atol=1e-7)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(4, 8))
def test_no_other_plane_through_the_origin_holds_more_of_the_path(seed: int, n: int) -> None:
    points = walk(seed, n)
    path = train_plane(snapshots(points), 3).path
    assert path is not None
    differences = np.array(points) - points[-1]
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(differences.shape[1], 2)))
    held = np.sum((differences @ basis) ** 2) / np.sum(differences**2)
    assert sum(path.shares) >= held
    np.testing.assert_allclose(sum(path.shares), np.sum(path.places**2) / np.sum(differences**2))


@pytest.mark.parametrize("method", METHODS)
def test_halves_and_singles_have_the_plane_of_what_they_hold(method: Method) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        kept = snapshots(walk(5, 5), dtype)
        held = [flat([*one.moved.values()]) for one in kept]
        plane = train_plane(kept, 3, method)
        first, _, places = ORACLES[method](held)
        assert plane.path is not None
        assert {part.dtype for part in plane.first} == {torch.float32}
        np.testing.assert_allclose(flat(plane.first), first, atol=1e-5 * np.abs(first).max())
        np.testing.assert_allclose(plane.path.places, places, atol=1e-4 * np.abs(places).max())


def test_large_values_do_not_overflow() -> None:
    plane = train_plane(snapshots(walk(1, 4, 1e30), torch.float32), 3)
    assert plane.path is not None
    assert np.isfinite(plane.path.places).all()


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from notebook_probe.quantities.reduce import slices

    kept = snapshots(walk(2, 5))
    whole = [train_plane(kept, 3, method) for method in METHODS]
    monkeypatch.setattr(slices.differences, "__defaults__", (3,))
    for before, method in zip(whole, METHODS, strict=True):
        np.testing.assert_allclose(
            flat(train_plane(kept, 3, method).second), flat(before.second), atol=1e-12
        )


def test_only_weights_and_biases_are_moved() -> None:
    kept = snapshots(walk(0, 3))
    assert [*kept[0].moved] == ["fc.weight", "fc.bias", "head.weight"]
    whole = {"token": torch.ones(2), "table.weight": torch.ones(2, dtype=torch.int64)}
    with pytest.raises(UnreadableError, match="nothing to move"):
        result_plane(ModelSnapshot(1, whole, {}), 3)
    with pytest.raises(UnreadableError, match="nothing to move"):
        train_plane([ModelSnapshot(number, whole, {}) for number in range(3)], 3)


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([np.arange(24.0) * step for step in range(4)], "move along a line"),
        ([np.arange(24.0)] * 4, "do not move"),
        ([np.arange(24.0), np.full(24, np.nan), np.ones(24)], "not finite"),
        ([np.arange(24.0), np.full(24, np.inf), np.ones(24)], "not finite"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_path_without_a_plane_is_said(method: Method, points: list[Array], why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        train_plane(snapshots(points), 3, method)


def test_two_snapshots_are_too_few_and_all_are_of_one_model() -> None:
    with pytest.raises(ValueError, match="three snapshots or more; there are: 1, 2"):
        train_plane(snapshots(walk(0, 2)), 3)
    other = ModelSnapshot(9, {"fc.weight": torch.ones(2, 2)}, {})
    with pytest.raises(CheckpointError, match="snapshots 1 and 9 are not of one model"):
        train_plane([*snapshots(walk(0, 2)), other], 3)


def test_a_random_direction_is_as_long_as_each_filter_and_leaves_vectors_where_they_are() -> None:
    own = snapshots(walk(0, 3))[-1]
    plane = result_plane(own, 5)
    assert plane.path is None
    assert plane.grid.xs == plane.grid.ys == (-1.0, -0.5, 0.0, 0.5, 1.0)
    for direction in (plane.first, plane.second):
        weight, bias, head = direction
        for drawn, name in ((weight, "fc.weight"), (head, "head.weight")):
            lengths = np.linalg.norm(own.parameters[name].numpy(), axis=1)
            np.testing.assert_allclose(np.linalg.norm(drawn.numpy(), axis=1), lengths, rtol=1e-6)
        assert not bias.any()
    assert not torch.equal(plane.first[0], plane.second[0])
    again = result_plane(own, 5)
    assert all(map(torch.equal, plane.first, again.first)), "the same plane every time"


def test_by_tensor_each_is_as_long_as_the_parameters_vectors_too() -> None:
    own = snapshots(walk(0, 3))[-1]
    plane = result_plane(own, 5, "tensor")
    for drawn, kept in zip(plane.second, own.moved.values(), strict=True):
        assert float(drawn.norm()) == pytest.approx(float(kept.norm()), rel=1e-6)
