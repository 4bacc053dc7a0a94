"""Attention that modules compute by hand, against numpy: masks, scales, shared keys, softmaxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import notebook_probe as nbp
from tests.probes.calls.attentive import (
    CAUSAL,
    HEADS,
    LENGTH,
    N_ITEMS,
    WIDTH,
    agree,
    batch,
    by_hand,
    causal,
    eager,
    products,
    recorded,
    train,
)
from tests.quantities.attention_oracle import Scores, wide

sdpa = F.scaled_dot_product_attention

HIDDEN = torch.rand(N_ITEMS, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) < 0.6
HIDDEN[1, 0, 2] = False  # a query that may see nothing
BIAS = torch.randn(HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(2))
LOWEST = torch.zeros(N_ITEMS, 1, LENGTH, LENGTH).masked_fill(~HIDDEN, torch.finfo().min)

PRODUCTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "causal": ({"is_causal": True}, {"allowed": CAUSAL}),
    "with a scale": ({"scale": 0.3}, {"scale": 0.3}),
    "with a mask": ({"attn_mask": HIDDEN}, {"allowed": HIDDEN.numpy()}),
    "with a mask of two axes": ({"attn_mask": causal()}, {"allowed": CAUSAL}),
    "with a bias per head": ({"attn_mask": BIAS}, {"added": wide(BIAS)}),
    "with the lowest number as a mask": ({"attn_mask": LOWEST}, {"allowed": HIDDEN.numpy()}),
    "with dropout": ({"dropout_p": 0.5}, {}),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_scaled_dot_product_attention(case: str, tmp_path: Path) -> None:
    given, expected = PRODUCTS[case]
    agree(
        recorded(tmp_path, by_hand(lambda q, k, v: sdpa(q, k, v, **given).nan_to_num())),
        products(by_hand(lambda q, k, v: v), **expected),
    )


def test_queries_that_share_keys(tmp_path: Path) -> None:
    agree(
        recorded(tmp_path, by_hand(lambda q, k, v: sdpa(q, k, v, enable_gqa=True), kv_heads=2)),
        products(by_hand(lambda q, k, v: v.repeat(1, 2, 1, 1), kv_heads=2)),
    )


SOFTMAXES: dict[str, Any] = {
    "functional": lambda s: F.softmax(s, dim=-1),
    "in another type": lambda s: F.softmax(s, -1, dtype=torch.float64).float(),
    "of torch": lambda s: torch.softmax(s, 3),
    "of a tensor": lambda s: s.softmax(dim=-1),
    "of a module": nn.Softmax(dim=-1),
}


@pytest.mark.parametrize("case", SOFTMAXES)
def test_scores_that_are_written_down(case: str, tmp_path: Path) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q @ k.mT / 2).masked_fill(~HIDDEN, -torch.inf)
        found: Tensor = SOFTMAXES[case](scores).nan_to_num() @ v
        return found

    agree(
        recorded(tmp_path, by_hand(attend)),
        products(by_hand(lambda q, k, v: v), allowed=HIDDEN.numpy()),
    )


def test_a_lowest_number_in_scores_is_a_mask(tmp_path: Path) -> None:
    agree(
        recorded(tmp_path, by_hand(eager)),
        products(by_hand(lambda q, k, v: v), allowed=CAUSAL),
    )


def test_attention_over_three_axes_has_one_head(tmp_path: Path) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q[:, 0], k[:, 0], v[:, 0])[:, None].expand_as(v)

    twin = by_hand(lambda q, k, v: v)
    expected = products(twin)
    agree(
        recorded(tmp_path, by_hand(attend)),
        Scores(expected.scores[:, :1], expected.seen[:, :1]),
    )


def test_calls_of_a_step_are_pooled_over_all_queries(tmp_path: Path) -> None:
    def twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q, k, v) + sdpa(2 * q[:, :, :2], k, v).mean()

    expected = products(by_hand(lambda q, k, v: v))
    doubled = Scores(2 * expected.scores[:, :, :2], expected.seen[:, :, :2])
    both = Scores(
        np.concatenate([expected.scores, doubled.scores], 2),
        np.concatenate([expected.seen, doubled.seen], 2),
    )
    agree(recorded(tmp_path, by_hand(twice)), both)


def test_a_module_hears_what_is_computed_below_it(tmp_path: Path) -> None:
    model = nn.Sequential(by_hand(sdpa))
    agree(recorded(tmp_path, model, place="0"), products(by_hand(lambda q, k, v: v)))


def test_a_module_without_attention_says_so(tmp_path: Path) -> None:
    def chosen(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v * F.softmax(q[:, 0, 0], -1).amax() * F.softmax(q, dim=1).amax()

    model = by_hand(chosen)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": ["attn_entropy"]}) as run:
        train(model, 2)
        [probe] = run.status().probes
    assert (probe.n_values, probe.n_errors) == (0, 0)
    assert "called, but computed no attention" in probe.note


def test_heads_of_different_number_are_a_gap_that_says_so(tmp_path: Path) -> None:
    def unlike(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q, k, v) + sdpa(q[:, :1], k[:, :1], v[:, :1])

    model = by_hand(unlike)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": ["attn_entropy"]}) as run:
        train(model, 2)
        [probe] = run.status().probes
    assert (probe.n_values, probe.n_errors) == (0, 0)
    assert "of 4 and of 1 heads" in probe.note


def test_own_quantities_of_an_attention(tmp_path: Path) -> None:
    def diagonal(attention: Any) -> Tensor:
        """Share that a query gives the key at its own place."""
        shares = torch.cat([piece.softmax(-1) for piece in attention.pieces()])
        return shares.diagonal(dim1=-2, dim2=-1).mean()

    expected = products(by_hand(lambda q, k, v: v), allowed=CAUSAL)
    shares = np.exp(expected.scores) * expected.seen
    shares /= shares.sum(-1, keepdims=True)
    model = by_hand(lambda q, k, v: sdpa(q, k, v, is_causal=True))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": [diagonal]}) as run:
        train(model)
        found = float(run.series("1", "diagonal")[0])
    assert found == pytest.approx(np.diagonal(shares, axis1=2, axis2=3).mean(), rel=1e-5)


def test_evaluations_and_single_calls_are_read_too(tmp_path: Path) -> None:
    model = by_hand(sdpa)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("1", "attn_entropy", phase="eval")
        run.attach("1", "attn_max_logit", per_call=True)
        train(model)
        model.eval()
        with torch.no_grad():
            expected = products(model).values()["attn_entropy"]
        train(model.train())
        assert float(run.data.eval_attn_entropy.sel(module="1").dropna("step")[0]) == (
            pytest.approx(expected, rel=1e-5)
        )
        assert "1[0]" in run.data.module


@pytest.mark.parametrize("kv_heads", [HEADS, 2])
def test_the_norms_of_queries_and_keys_are_recorded(kv_heads: int, tmp_path: Path) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q, k, v, enable_gqa=True, is_causal=True)

    model = by_hand(attend, kv_heads=kv_heads)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": "qk_norm_product"}) as run:
        train(model)
    twin: Any = by_hand(attend, kv_heads=kv_heads)
    twin(batch())
    q, k = (np.linalg.norm(wide(one), axis=-1) for one in twin[1].last)
    products = q.max(-1) * np.repeat(k, HEADS // kv_heads, axis=1).max(-1)
    wanted = products.max() / np.sqrt(WIDTH // HEADS)
    assert run.series("1", "qk_norm_product").values == pytest.approx([wanted], rel=2e-5)
