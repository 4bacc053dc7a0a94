"""The plane of a path against a singular value decomposition in float64 numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import mse_loss

import notebook_probe as nbp
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue import training_path as path
from notebook_probe.quantities.catalogue.training_path import MOST, PATH_PLANE, PathPoints
from notebook_probe.quantities.reduce.landscape import Landscape

Array: TypeAlias = npt.NDArray[np.float64]

BOWL = np.array([1.0, 4.0, 0.5, 2.0, 3.0])


def bowl(at: Array) -> Landscape:
    """``sum c w^2``"""
    weights = torch.tensor(BOWL)
    return Landscape(lambda point: (weights * point[0].square()).sum(), [torch.tensor(at)])


def walked(name: str, points: list[Array]) -> Any:
    """What a window says at the last of some points."""
    window = as_quantity(name)()
    for point in points:
        window.reset()
        window.update(bowl(point))
    return window.compute()


def walk(seed: int, n: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [*np.cumsum(rng.normal(size=(n, len(BOWL))), axis=0)]


def plane(points: list[Array]) -> tuple[Array, Array, Array]:
    """How far the path reaches along its first two directions, times these; and all shares."""
    away = np.array(points[:-1]) - points[-1]
    left, sizes, axes = np.linalg.svd(away, full_matrices=False)
    reaches = []
    for i in range(2):
        along = left[:, i] * sizes[i]
        sign = np.sign(along[0])
        reaches.append(sign * np.abs(along).max() * axes[i])
    return reaches[0], reaches[1], sizes**2 / np.sum(sizes**2)


@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_plane_is_that_of_the_first_two_singular_vectors(n: int) -> None:
    points = walk(n, n)
    first, second, shares = plane(points)
    xs, ys = (PATH_PLANE.coords[f"path_{axis}"] for axis in "xy")
    at = [points[-1] + x * first + y * second for x, y in zip(xs, ys, strict=True)]
    want = [np.sum(BOWL * each**2) for each in at]
    np.testing.assert_allclose(walked("loss_landscape_path", points), want, rtol=1e-9)
    found = walked("path_shares", points).numpy()
    np.testing.assert_allclose(found[: len(shares)], shares, atol=1e-12)
    assert found.sum() == pytest.approx(1)


def test_the_middle_of_the_plane_is_where_the_parameters_are() -> None:
    points = walk(0, 6)
    assert float(walked("loss_landscape_path", points)[60]) == float(bowl(points[-1]).value)


def test_of_long_paths_some_points_are_kept_evenly_and_the_first() -> None:
    points = walk(1, 40)
    kept = [*points[:39:8], points[-1]]  # of 39 earlier ones
    np.testing.assert_allclose(
        walked("loss_landscape_path", points), walked("loss_landscape_path", kept), rtol=1e-12
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 300))
def test_points_are_few_and_evenly_spaced_whatever_their_number(n: int) -> None:
    points = PathPoints()
    for step in range(n):
        points.add(torch.tensor([step]))
    kept = [int(point) for point in points.points]
    assert kept[0] == 0
    assert len(kept) <= MOST
    assert len({*np.diff(kept)}) <= 1
    assert n - kept[-1] <= max(1, *np.diff([*kept, 2 * kept[-1]])) or len(kept) == 1


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.integers(3, 9), st.sampled_from([1e-3, 1.0, 1e3]))
def test_shares_know_neither_units_nor_turns(seed: int, n: int, scale: float) -> None:
    points = walk(seed, n)
    axes, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(BOWL), len(BOWL))))
    turned = [scale * axes @ point for point in points]
    np.testing.assert_allclose(
        walked("path_shares", turned), walked("path_shares", points), atol=1e-9
    )


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    points = walk(2, 6)
    whole = walked("loss_landscape_path", points)
    monkeypatch.setattr(path, "PIECE", 2)
    np.testing.assert_allclose(walked("loss_landscape_path", points), whole, rtol=1e-12)


def test_a_straight_path_has_no_plane_and_all_in_one_direction() -> None:
    straight = [np.arange(5.0) * step for step in range(4)]
    assert walked("loss_landscape_path", straight) is None
    np.testing.assert_allclose(walked("path_shares", straight)[:2], [1, 0], atol=1e-12)


@pytest.mark.parametrize("name", ["loss_landscape_path", "path_shares"])
def test_what_cannot_be_told_is_missing(name: str) -> None:
    points = walk(3, 5)
    assert walked(name, points[:2]) is None, "two points lie on a line"
    assert walked(name, [*points, np.full(5, np.nan)]) is None
    assert walked(name, [points[0]] * 4) is None, "nothing has moved"


def test_other_parameters_begin_another_path() -> None:
    points = walk(4, 5)
    window = as_quantity("path_shares")()
    for point in (np.ones(3), np.zeros(3), *points):
        window.reset()
        here = torch.tensor(point)
        window.update(Landscape(lambda given: given[0].square().sum(), [here]))
    np.testing.assert_allclose(window.compute(), walked("path_shares", points))


def test_what_is_recorded_is_of_the_way_a_training_took(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x, y = torch.randn(30, 3), torch.randn(30, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    points: list[Array] = []
    names = ["loss_landscape_path", "path_shares"]
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": [[n, 2] for n in names]}) as run:
        run.probe_batch(x, y, mse_loss)
        for step in range(7):
            if step % 2 == 0:
                flat = torch.cat([p.detach().flatten() for p in model.parameters()])
                points.append(flat.double().numpy())
            optimizer.zero_grad()
            mse_loss(model(x), y).backward()
            optimizer.step()
    first, second, shares = plane(points)
    found = run.series("", "path_shares")
    assert found.step.values.tolist() == [4, 6]
    np.testing.assert_allclose(found[-1, :3], shares, atol=1e-6)
    torch.nn.utils.vector_to_parameters(
        torch.tensor(points[-1] + 0.5 * first - 1.25 * second).float(), model.parameters()
    )
    losses = run.series("", "loss_landscape_path")[-1]
    [at] = losses.values[(losses.path_x == 0.5) & (losses.path_y == -1.25)]
    assert float(at) == pytest.approx(mse_loss(model(x), y).item(), rel=1e-4)
