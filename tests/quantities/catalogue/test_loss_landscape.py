"""Slices of a loss landscape against the loss at each point, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.catalogue.loss_landscape import (
    DISTANCE,
    PLANE,
    filter_normalised,
    loss_landscape_1d,
    loss_landscape_2d,
)
from notebook_probe.quantities.reduce.landscape import Landscape

weight = np.random.default_rng(0).normal(size=(3, 4))
bias = np.array([0.5, -0.5])


def bowl() -> Landscape:
    """``sum w^2 + sum b``"""
    return Landscape(
        lambda point: point[0].square().sum() + point[1].sum(),
        [torch.tensor(weight), torch.tensor(bias)],
    )


def direction(seed: int) -> np.ndarray:
    return bowl().split(filter_normalised(bowl(), seed))[0].numpy()


def test_every_filter_of_a_direction_is_as_long_as_the_weights_and_biases_stay() -> None:
    own, of_bias = bowl().split(filter_normalised(bowl(), 0))
    lengths = np.linalg.norm(weight, axis=1)
    np.testing.assert_allclose(np.linalg.norm(own.numpy(), axis=1), lengths, rtol=1e-6)
    assert of_bias.tolist() == [0.0, 0.0]


def test_a_convolutions_filters_are_normalised_as_a_whole() -> None:
    conv = Landscape(lambda point: point[0].sum(), [torch.randn(4, 2, 3, 3)])
    [drawn] = conv.split(filter_normalised(conv, 0))
    lengths = [np.linalg.norm(one) for one in conv.point[0].detach().numpy()]
    np.testing.assert_allclose([np.linalg.norm(one) for one in drawn], lengths, rtol=1e-6)


def test_a_line_is_the_loss_at_each_of_its_points() -> None:
    d = direction(0)
    expected = [np.sum((weight + a * d) ** 2) + bias.sum() for a in DISTANCE.coords["distance"]]
    np.testing.assert_allclose(loss_landscape_1d(bowl()).numpy(), expected, rtol=1e-6)


def test_a_plane_is_the_loss_at_each_of_its_points() -> None:
    d, e = direction(0), direction(1)
    points = zip(PLANE.coords["plane_x"], PLANE.coords["plane_y"], strict=True)
    expected = [np.sum((weight + x * d + y * e) ** 2) + bias.sum() for x, y in points]
    np.testing.assert_allclose(loss_landscape_2d(bowl()).numpy(), expected, rtol=1e-6)


def test_the_middle_of_both_is_the_loss_where_the_weights_are() -> None:
    here = float(bowl().value)
    line, plane = loss_landscape_1d(bowl()).numpy(), loss_landscape_2d(bowl()).numpy()
    np.testing.assert_allclose([line[10], plane[60]], here)


def test_the_slices_lie_in_the_same_place_at_every_step() -> None:
    assert torch.equal(loss_landscape_1d(bowl()), loss_landscape_1d(bowl()))


def test_without_parameters_there_is_no_slice() -> None:
    with pytest.raises(UnreadableError, match="nothing there requires a gradient"):
        loss_landscape_1d(Landscape(lambda point: torch.ones(()), []))
