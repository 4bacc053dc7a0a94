"""Directions, grids and points of a path, of any size and number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.quantities.catalogue.loss_landscape import PLANE
from notebook_probe.quantities.catalogue.training_path import PATH_PLANE
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.slices import (
    PathPoints,
    SliceGrid,
    differences,
    evenly,
    random_direction,
)


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_grid_has_every_pair_row_by_row(n: int, m: int) -> None:
    grid = SliceGrid(evenly(n), evenly(m, 0.0, 5.0))
    assert len(grid) == n * m == len([*grid])
    assert [*grid] == [(x, y) for x in evenly(n) for y in evenly(m, 0.0, 5.0)]
    axis = grid.axis("place", "at", "group")
    assert [*zip(axis.coords["at_x"], axis.coords["at_y"], strict=True)] == [*grid]


def test_the_planes_of_the_quantities_are_what_they_were() -> None:
    line = np.linspace(-1, 1, 11).round(9)
    np.testing.assert_array_equal(PLANE.coords["plane_x"], np.repeat(line, 11))
    np.testing.assert_array_equal(PLANE.coords["plane_y"], np.tile(line, 11))
    path = np.linspace(-1.25, 1.25, 11)
    np.testing.assert_allclose(PATH_PLANE.coords["path_x"], np.repeat(path, 11), rtol=1e-15)


def test_losses_are_those_at_the_points() -> None:
    bowl = Landscape(lambda point: point[0].square().sum(), [torch.tensor([1.0, 2.0])])
    first, second = torch.eye(2)
    grid = SliceGrid((0.0, 1.0), (0.0, 3.0, 4.0))
    want = [(1 + x) ** 2 + (2 + y) ** 2 for x, y in grid]
    assert grid.losses(bowl, first, second).tolist() == want


@given(st.integers(1, 8).map(lambda n: 2 * n), st.integers(1, 100))
def test_of_a_path_at_most_so_many_points_are_kept_the_first_among_them(most: int, n: int) -> None:
    points = PathPoints(most)
    for step in range(n):
        points.add(torch.tensor([step]))
    kept = [int(point) for point in points.points]
    assert kept[0] == 0
    assert len(kept) <= most
    assert len({*np.diff(kept)}) <= 1


@given(st.integers(1, 12))
def test_differences_are_the_same_in_pieces_of_any_size(piece: int) -> None:
    points = torch.arange(20.0).reshape(2, 10).square()
    found = torch.cat([*differences([*points], points[1], piece)], dim=1)
    assert torch.equal(found, points.double() - points[1].double())


@pytest.mark.parametrize("shape", [(3, 4), (5, 2, 3, 3), (0, 4), (4, 0)])
def test_a_direction_is_as_long_as_each_filter_or_as_the_whole_tensor(
    shape: tuple[int, ...],
) -> None:
    own = torch.randn(shape)
    [by_filter] = random_direction([own], 0)
    [by_tensor] = random_direction([own], 0, "tensor")
    torch.testing.assert_close(by_filter.flatten(1).norm(dim=1), own.flatten(1).norm(dim=1))
    torch.testing.assert_close(by_tensor.norm(), own.norm())
