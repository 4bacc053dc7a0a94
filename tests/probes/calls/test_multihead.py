"""nn.MultiheadAttention against numpy: layouts, masks, keys of its own, other widths of keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.probes.calls.attentive import HEADS, LENGTH, N_ITEMS, WIDTH, agree, recorded
from tests.quantities.attention_oracle import Array, Scores, wide

N_KEYS = 5


class Cross(nn.Module):
    """A multi-head attention between what comes in and some fixed keys."""

    def __init__(self, call: dict[str, Any], unbatched: bool = False, **given: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.call, self.unbatched = call, unbatched
        self.inner = nn.MultiheadAttention(WIDTH, HEADS, **given)
        with torch.no_grad():
            for name, value in self.inner.named_parameters():
                value.mul_(4 if "weight" in name else 1).add_(0.1 if "bias" in name else 0)
        width = self.inner.kdim
        self.keys = torch.randn(N_ITEMS, N_KEYS, width, generator=torch.Generator().manual_seed(3))
        self.values = self.keys[..., : self.inner.vdim]

    def forward(self, x: Tensor) -> Tensor:
        given = [x, self.keys, self.values]
        if self.unbatched:
            given = [one[0] for one in given]
        elif not self.inner.batch_first:
            given = [one.transpose(0, 1) for one in given]
        found: Tensor = self.inner(*given, **self.call)[0]
        return found


def expected(twin: Cross, x: Tensor, allowed: Any = True, added: Array | float = 0.0) -> Scores:
    """By numpy, from the weights."""
    inner, keys = twin.inner, wide(twin.keys)
    if inner.in_proj_weight is not None:
        weights = np.split(wide(inner.in_proj_weight), 3)[:2]
    else:
        weights = [wide(inner.q_proj_weight), wide(inner.k_proj_weight)]
    biases: list[Any] = [0.0, 0.0]
    if inner.in_proj_bias is not None:
        biases = np.split(wide(inner.in_proj_bias), 3)[:2]
    queries = wide(x) @ weights[0].T + biases[0]
    rows = [keys @ weights[1].T + biases[1]]
    if inner.bias_k is not None:
        rows.append(np.broadcast_to(wide(inner.bias_k), (len(keys), 1, WIDTH)))
    if inner.add_zero_attn:
        rows.append(np.zeros((len(keys), 1, WIDTH)))
    every = np.concatenate(rows, axis=1)
    n_own = every.shape[1] - N_KEYS
    if isinstance(allowed, np.ndarray):
        padding = [(0, 0)] * (allowed.ndim - 1) + [(0, n_own)]
        allowed = np.pad(allowed, padding, constant_values=True)
    if isinstance(added, np.ndarray):
        added = np.pad(added, [(0, 0)] * (added.ndim - 1) + [(0, n_own)])
    by_head = [np.stack(np.split(one, HEADS, axis=-1), axis=1) for one in (queries, every)]
    items = slice(0, 1) if twin.unbatched else slice(None)
    return Scores.of(by_head[0][items], by_head[1][items], allowed, added)


def case(twin: Cross, path: Path, allowed: Any = True, added: Array | float = 0.0) -> None:
    model = nn.Sequential(nn.Identity(), twin)
    x = torch.randn(N_ITEMS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(0))
    scores = expected(twin, x, allowed, added)
    agree(recorded(path, model, place="1.inner"), scores)


MASK = np.random.default_rng(0).random((LENGTH, N_KEYS)) < 0.5
MASK[3] = True
PADDED = np.arange(N_KEYS)[None] >= np.array([[5], [3], [1]])
BIAS = np.random.default_rng(1).normal(size=(N_ITEMS * HEADS, LENGTH, N_KEYS)).astype(np.float32)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("given", [{}, {"batch_first": True}, {"bias": False}])
def test_layouts(given: dict[str, Any], need_weights: bool, tmp_path: Path) -> None:
    case(Cross({"need_weights": need_weights}, **given), tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"kdim": 12, "vdim": 10},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
        {"dropout": 0.3},
    ],
)
def test_keys_of_other_kinds(given: dict[str, Any], tmp_path: Path) -> None:
    case(Cross({"need_weights": False}, **given), tmp_path)


@pytest.mark.parametrize("given", [{}, {"add_bias_kv": True, "add_zero_attn": True}])
@pytest.mark.parametrize("need_weights", [True, False])
def test_masks(given: dict[str, Any], need_weights: bool, tmp_path: Path) -> None:
    call = {
        "need_weights": need_weights,
        "attn_mask": torch.from_numpy(~MASK),
        "key_padding_mask": torch.from_numpy(PADDED),
    }
    allowed = MASK & ~PADDED[:, None, None]
    case(Cross(call, **given), tmp_path, allowed=allowed)


def test_a_bias_per_head_and_item(tmp_path: Path) -> None:
    call = {"attn_mask": torch.from_numpy(BIAS)}
    added = BIAS.reshape(N_ITEMS, HEADS, LENGTH, N_KEYS).astype(np.float64)
    case(Cross(call, batch_first=True), tmp_path, added=added)


def test_padding_in_numbers_alone(tmp_path: Path) -> None:
    hidden = torch.zeros(PADDED.shape).masked_fill(torch.from_numpy(PADDED), -torch.inf)
    case(Cross({"key_padding_mask": hidden}), tmp_path, allowed=~PADDED[:, None, None])


def test_a_single_item_without_a_batch_axis(tmp_path: Path) -> None:
    call = {"key_padding_mask": torch.from_numpy(PADDED[1])}
    allowed = ~PADDED[1][None, None, None]
    case(Cross(call, unbatched=True), tmp_path, allowed=allowed)


def test_a_causal_hint_in_place_of_the_mask(tmp_path: Path) -> None:
    seen = np.tril(np.ones((LENGTH, N_KEYS), bool))
    call = {"attn_mask": torch.from_numpy(~seen), "is_causal": True, "need_weights": False}
    case(Cross(call), tmp_path, allowed=seen)


@pytest.mark.parametrize("causal", [False, True])
def test_a_transformer_s_layer(causal: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, batch_first=True, norm_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH) if causal else None

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.layer(x, src_mask=mask, is_causal=causal)
            return found

    x = torch.randn(N_ITEMS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(0))
    rows = layer.norm1(x)
    weight, bias = layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias
    both = (wide(rows) @ wide(weight).T + wide(bias))[..., : 2 * WIDTH]
    query, key = (
        np.stack(np.split(one, HEADS, axis=-1), axis=1) for one in np.split(both, 2, axis=-1)
    )
    allowed = np.tril(np.ones((LENGTH, LENGTH), bool)) if causal else True
    agree(recorded(tmp_path, Masked(), place="layer.self_attn"), Scores.of(query, key, allowed))
