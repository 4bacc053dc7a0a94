"""A tensor becomes maps by what it is, and no more of them than a panel can show."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from notebook_probe.explorer.draw import look_blocks
from notebook_probe.explorer.draw.look_blocks import maps_of


def numbered(*shape: int) -> npt.NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_of_images_one_sample_is_shown_by_channel() -> None:
    array = numbered(5, 3, 4, 6)
    maps = maps_of("output", array, sample=2)
    np.testing.assert_array_equal(maps.values, array[2])
    assert (maps.places, maps.n_samples, maps.note) == ([0, 1, 2], 5, "")
    assert maps_of("output", array, sample=9).values[0, 0, 0] == array[4, 0, 0, 0]


def test_of_a_sequence_it_is_one_map_of_positions_and_channels() -> None:
    array = numbered(5, 7, 4)
    np.testing.assert_array_equal(maps_of("input", array, 1).values, array[1][None])


def test_of_vectors_it_is_one_map_of_all_samples() -> None:
    array = numbered(5, 7)
    maps = maps_of("output", array, 1)
    np.testing.assert_array_equal(maps.values, array[None])
    assert maps.n_samples == 0


def test_of_a_head_it_is_how_queries_share_themselves_out() -> None:
    array = numbered(2, 8, 5, 5)
    np.testing.assert_array_equal(maps_of("attention", array, 1).values, array[1])


@pytest.mark.parametrize("shape", [(6,), (6, 4)])
def test_a_bias_and_a_matrix_are_one_map(shape: tuple[int, ...]) -> None:
    array = numbered(*shape)
    assert maps_of("weight", array).values.shape == (1, *((1,) * (2 - len(shape))), *shape)


def test_filters_of_several_inputs_are_their_norm_over_them() -> None:
    array = numbered(4, 3, 2, 2) - 20
    maps = maps_of("weight", array)
    wanted = np.linalg.norm(array.astype(np.float64), axis=1)
    np.testing.assert_allclose(maps.values, wanted, rtol=1e-6)
    assert maps.note == "norm over 3 inputs"
    single = numbered(4, 1, 2, 2)
    np.testing.assert_array_equal(maps_of("weight", single).values, single[:, 0])


def test_of_too_many_maps_those_with_the_largest_norms_stay_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look_blocks, "MOST_MAPS", 2)
    array = np.ones((1, 4, 2, 2), np.float32) * np.array([3, 1, np.nan, 5])[:, None, None]
    maps = maps_of("output", array.astype(np.float32))
    assert maps.places == [0, 3]
    assert maps.note == "+ 2 more"
    assert maps_of("output", array.astype(np.float32), places=[1, 2]).places == [1, 2]


def test_large_maps_are_thinned_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_blocks, "MOST_NUMBERS", 100)
    array = numbered(1, 1, 20, 20)
    maps = maps_of("output", array)
    np.testing.assert_array_equal(maps.values[0], array[0, 0, ::2, ::2])
    assert maps.note == "every 2nd row and column is shown"


@pytest.mark.slow
@given(
    st.sampled_from(["input", "output", "grad_output", "weight", "grad", "update"]),
    arrays.arrays(np.float32, arrays.array_shapes(min_dims=1, max_dims=6, max_side=5)),
    st.integers(0, 9),
)
def test_whatever_its_shape_a_tensor_has_maps(
    tensor: str, array: npt.NDArray[np.float32], sample: int
) -> None:
    maps = maps_of(tensor, array, sample)
    assert maps.values.ndim == 3
    assert maps.values.dtype == np.float32
    assert len(maps.values) == len(maps.places) > 0
