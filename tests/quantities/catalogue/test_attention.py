"""Measuring scores: laws, pieces, broken and reduced numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.attention import Heads, heads, norms
from notebook_probe.quantities.reduce import attention_scores as scores
from notebook_probe.quantities.reduce.attention_scores import GivenScores, Products
from tests.quantities.attention_oracle import Scores, wide

SIZES = st.tuples(*[st.integers(1, 4)] * 2, *[st.integers(1, 6)] * 2)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def values(of: Heads) -> dict[str, Any]:
    names = Scores(np.zeros((1, 1, 1, 2)), np.ones((1, 1, 1, 2), bool)).values()
    return {name: np.asarray(as_quantity(name)(of)) for name in names}


def agree(found: Heads, expected: Heads) -> None:
    for name, value in values(found).items():
        np.testing.assert_allclose(value, values(expected)[name], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(SIZES, st.integers(0, 99), st.booleans(), st.integers(1, 40))
def test_pieces_of_any_size_are_all_there_is(
    sizes: tuple[int, int, int, int], seed: int, is_causal: bool, size: int
) -> None:
    n_items, n_heads, n_queries, n_keys = sizes
    query, key = (
        drawn(n_items, n_heads, n_queries, 3, seed=seed),
        drawn(n_items, n_heads, n_keys, 3),
    )
    whole = heads(Products.of(query, key, is_causal=is_causal))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "PIECE", size)
        attention = Products.of(query, key, is_causal=is_causal)
        pieces = [*attention.pieces()]
        assert all(piece.numel() <= max(size, n_heads * n_keys) for piece in pieces)
        assert sum(piece.numel() for piece in pieces) == math.prod(sizes)
        agree(heads(attention), whole)


@settings(deadline=None, max_examples=30)
@given(SIZES, st.integers(0, 99))
def test_an_order_of_keys_changes_no_entropy(sizes: tuple[int, int, int, int], seed: int) -> None:
    table = 5 * drawn(*sizes, seed=seed)
    order = torch.randperm(sizes[-1], generator=torch.Generator().manual_seed(seed))
    one, other = heads(GivenScores.of(table)), heads(GivenScores.of(table[..., order]))
    torch.testing.assert_close(one.entropy, other.entropy)
    torch.testing.assert_close(one.largest, other.largest)


@settings(deadline=None, max_examples=30)
@given(SIZES, st.integers(0, 99), st.floats(0.01, 30))
def test_entropy_lies_between_one_key_and_all_alike(
    sizes: tuple[int, int, int, int], seed: int, scale: float
) -> None:
    found = heads(GivenScores.of(scale * drawn(*sizes, seed=seed)))
    assert (found.entropy >= -1e-5).all()
    assert (found.entropy <= found.possible * (1 + 1e-5) + 1e-5).all()


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(0, 99))
def test_the_queries_of_two_calls_count_as_one(n_items: int, seed: int) -> None:
    table = 3 * drawn(n_items, 3, 4, 5, seed=seed)
    both = heads(GivenScores.of(table[:1])).merge(heads(GivenScores.of(table[1:])))
    agree(both, heads(GivenScores.of(table)))


def test_even_attention_has_all_there_can_be_also_under_a_mask() -> None:
    even = heads(Products.of(torch.zeros(2, 3, 6, 4), drawn(2, 3, 6, 4), is_causal=True))
    assert as_quantity("attn_entropy_share")(even) == pytest.approx(1.0)
    harmonic = np.mean([1 / n for n in range(1, 7)])
    assert as_quantity("attn_sink_share")(even) == pytest.approx(harmonic)
    assert as_quantity("attn_entropy")(even) == pytest.approx(np.mean(np.log(range(1, 7))))


def test_one_key_leaves_no_choice() -> None:
    found = values(heads(GivenScores.of(drawn(2, 3, 4, 1))))
    assert (found["attn_entropy"], found["attn_sink_share"]) == (0, 1)
    assert np.isnan(found["attn_entropy_share"])


def test_where_every_key_is_masked_there_is_no_value() -> None:
    found = values(heads(GivenScores.of(torch.full((2, 3, 4, 5), -torch.inf))))
    assert all(np.isnan(value).all() for value in found.values())


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_broken_score_breaks_its_own_head(broken: float) -> None:
    table = drawn(1, 2, 3, 4)
    table[0, 1, 2, 3] = broken
    found = values(heads(GivenScores.of(table)))
    assert np.isnan(found["attn_head_entropy"]).tolist() == [False, True]
    assert np.isnan(found["attn_entropy"])
    assert found["attn_max_logit"] == pytest.approx(broken, nan_ok=True)


def test_large_scores_do_not_overflow() -> None:
    table = torch.tensor([[[[1e30, 1e30, -1e30, 0.0]]]])
    found = values(heads(GivenScores.of(table)))
    assert found["attn_entropy"] == pytest.approx(math.log(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_are_measured_in_float32_or_wider(dtype: torch.dtype) -> None:
    query, key = drawn(2, 4, 5, 8).to(dtype), drawn(2, 2, 6, 8).to(dtype)
    found = values(heads(Products.of(query, key, scale=1.0)))
    for name, value in Scores.of(wide(query), wide(key), scale=1.0).values().items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_lowest_number_of_a_type_is_a_mask(dtype: torch.dtype) -> None:
    table = drawn(1, 2, 3, 4).to(dtype)
    table[..., 2:] += torch.finfo(dtype).min
    found = heads(GivenScores.of(table))
    assert found.possible.tolist() == pytest.approx([3 * math.log(2)] * 2)


def test_items_that_share_their_keys() -> None:
    query, key = drawn(3, 2, 4, 8), drawn(1, 2, 5, 8)
    agree(heads(Products.of(query, key)), heads(Products.of(query, key.expand(3, -1, -1, -1))))


def test_more_axes_before_the_heads_are_items() -> None:
    query, mask = drawn(2, 3, 4, 5, 8), drawn(4, 5, 5) > 0
    flat = Products.of(query.flatten(0, 1), query.flatten(0, 1), mask)
    agree(heads(Products.of(query, query, mask)), heads(flat))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (drawn(2, 3), "a Tensor has no attention heads"),
        (GivenScores.of(torch.zeros(2, 0, 3, 3)), "has no score"),
    ],
)
def test_what_has_no_scores_cannot_be_read(given: Any, said: str) -> None:
    with pytest.raises(UnreadableError, match=said):
        heads(given, nn.Identity())


def test_nested_tensors_cannot_be_read() -> None:
    nested = torch.nested.nested_tensor([drawn(2, 3, 4), drawn(2, 5, 4)], layout=torch.jagged)
    with pytest.raises(UnreadableError, match="nested"):
        Products.of(nested, nested)


@settings(deadline=None, max_examples=30)
@given(SIZES, st.integers(1, 3), st.integers(0, 99), st.sampled_from([None, 0.3, -2.0]))
def test_no_score_is_above_the_product_of_norms(
    sizes: tuple[int, int, int, int], n_sharing: int, seed: int, scale: float | None
) -> None:
    n_items, n_heads, n_queries, n_keys = sizes
    query = drawn(n_items, n_heads * n_sharing, n_queries, 3, seed=seed)
    key = drawn(n_items, n_heads, n_keys, 3, seed=seed + 1)
    attention = Products.of(query, key, scale=scale)
    found = norms(attention)
    lengths = np.linalg.norm(wide(query), axis=-1), np.linalg.norm(wide(key), axis=-1)
    repeated = np.repeat(lengths[1], n_sharing, axis=1)
    every = lengths[0][..., :, None] * repeated[..., None, :] * abs(scale or 3**-0.5)
    np.testing.assert_allclose(found.largest.numpy(), every.max((0, 2, 3)), rtol=1e-5)
    assert (heads(attention).largest <= found.largest * (1 + 1e-5)).all()
    value = as_quantity("qk_norm_product")(found)
    assert value == pytest.approx(every.max(), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_other_types_are_measured_in_float32_or_wider(dtype: torch.dtype) -> None:
    query, key = (300 * drawn(2, 4, 5, 8)).to(dtype), drawn(2, 4, 6, 8).to(dtype)
    lengths = [np.linalg.norm(wide(one), axis=-1).max(-1) for one in (query, key)]
    found = norms(Products.of(query, key, scale=1.0)).largest
    np.testing.assert_allclose(found.numpy(), (lengths[0] * lengths[1]).max(0), rtol=1e-5)


def test_calls_of_a_step_have_the_larger_product_and_a_broken_key_breaks_its_head() -> None:
    one, other = (Products.of(drawn(1, 2, 3, 4, seed=n), drawn(1, 2, 5, 4)) for n in (1, 2))
    wanted = torch.maximum(norms(one).largest, norms(other).largest)
    assert torch.equal(norms(one).merge(norms(other)).largest, wanted)
    key = drawn(1, 2, 5, 4)
    key[0, 1, 2, 3] = torch.nan
    broken = norms(Products.of(drawn(1, 2, 3, 4), key)).largest
    assert broken.isnan().tolist() == [False, True]
    with pytest.raises(QuantityError, match="attention of 2 and of 3 heads"):
        norms(one).merge(norms(Products.of(drawn(1, 3, 3, 4), drawn(1, 3, 5, 4))))


def test_scores_without_their_queries_have_no_norms() -> None:
    with pytest.raises(UnreadableError, match="no queries and keys"):
        norms(GivenScores.of(torch.zeros(1, 2, 3, 4)))
    with pytest.raises(UnreadableError, match="no score"):
        norms(Products.of(torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 3, 4)))
