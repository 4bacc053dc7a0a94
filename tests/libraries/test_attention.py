"""Attention in models of transformers against the shares they return, and scores by numpy."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.libraries import other_models, transformers_models
from tests.libraries.case import words
from tests.libraries.transformers_models import bert, gpt2, llama
from tests.models import made
from tests.probes.parity import differing, everything
from tests.quantities.attention_oracle import Array, Scores, wide

pytestmark = pytest.mark.libraries

NAMES = ("attn_entropy", "attn_entropy_min", "attn_sink_share", "attn_max_logit")
N_PADDED = 4
MASK = torch.ones(2, 12, dtype=torch.long)
MASK[1, :N_PADDED] = 0  # on the left: these queries see nothing

MODELS: dict[str, tuple[Any, str]] = {
    "GPT-2": (gpt2, "transformer.h.{}.attn"),
    "Llama": (llama, "model.layers.{}.self_attn"),
    "BERT": (bert, "bert.encoder.layer.{}.attention.self"),
}


def without_dropout(build: Any, kind: str) -> Any:
    torch.manual_seed(0)
    model = build()
    model.set_attn_implementation(kind)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 2 and ("attn" in name or "attention" in name):
                value.mul_(20)  # scores that differ
    return model


def recorded(path: Path, name: str, kind: str) -> list[dict[str, float]]:
    """Per layer, of one step."""
    build, place = MODELS[name]
    model = without_dropout(build, kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    store = path / f"{kind}.zarr"
    with nbp.watch(model, store=store, probes={place.format("*"): list(NAMES)}) as run:
        model(input_ids=words(0), attention_mask=MASK, labels=words(0)).loss.backward()
        optimizer.step()
        assert not run.status().errors
    data = run.data.isel(step=0)
    return [
        {one: float(data[one].sel(module=place.format(layer))) for one in NAMES}
        for layer in range(2)
    ]


def returned(name: str) -> list[Array]:
    """The shares that the model itself returns, layer by layer."""
    model = without_dropout(MODELS[name][0], "eager")
    found = model(input_ids=words(0), attention_mask=MASK, output_attentions=True).attentions
    return [wide(one) for one in found]


@pytest.mark.parametrize("name", MODELS)
def test_both_implementations_give_what_the_model_says_of_itself(name: str, tmp_path: Path) -> None:
    counts = MASK.numpy().astype(bool) | (name == "BERT")  # there every query sees some key
    by_kind = [recorded(tmp_path, name, kind) for kind in ("sdpa", "eager")]
    for layer, shares in enumerate(returned(name)):
        logs = np.log(np.where(shares > 0, shares, 1))
        entropies = -(shares * logs).sum(-1).transpose(1, 0, 2)[:, counts].mean(-1)
        first = shares[..., 0].transpose(1, 0, 2)[:, counts].mean()
        for found in by_kind:
            assert found[layer]["attn_entropy"] == pytest.approx(entropies.mean(), rel=1e-4)
            assert found[layer]["attn_entropy_min"] == pytest.approx(entropies.min(), rel=1e-4)
            assert found[layer]["attn_sink_share"] == pytest.approx(first, rel=1e-4)
        assert by_kind[0][layer]["attn_max_logit"] == pytest.approx(
            by_kind[1][layer]["attn_max_logit"], rel=1e-4
        )


EVERY = {"U-Net": 4, "VAE": 2, "x-transformers": 2, "T5": 6, "ViT": 2, "Whisper": 6, "Mixtral": 2}


@pytest.mark.parametrize("name", EVERY)
def test_the_preset_finds_every_attention_and_training_stays_the_same(
    name: str, tmp_path: Path
) -> None:
    case = {**transformers_models.CASES, **other_models.CASES}[name]
    left, model = [], made(case.build).train()
    for watched in (made(case.build).train(), model):
        random.seed(1)
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(watched.parameters())
        probes = "attention" if watched is model else None
        with nbp.watch(watched, store=tmp_path / str(probes), probes=probes) as run:
            for step in range(2):
                optimizer.zero_grad()
                case.loss(watched(**case.batch(step))).backward()
                optimizer.step()
        left.append(everything(watched, [optimizer]))
    assert differing(*left) == []
    found = run.data.attn_entropy.dropna("step", how="all").dropna("module")  # of each its loss
    assert found.shape == (EVERY[name], 1)  # the first of every ten steps
    assert not run.status().errors


def turned(rows: Array) -> Array:
    """Rotary embeddings by their definition: pairs (c, c + half) turn with the position."""
    half = rows.shape[-1] // 2
    angles = np.arange(rows.shape[-2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    one, other = rows[..., :half], rows[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([one * cos - other * sin, other * cos + one * sin], -1)


def test_the_largest_score_of_rotated_queries_is_that_of_the_formula(tmp_path: Path) -> None:
    model, seen = without_dropout(llama, "sdpa"), {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, given: Any, output: Tensor) -> None:
            seen[name] = wide(output.unflatten(-1, (-1, 8)).transpose(1, 2))

        return hook

    attention = model.model.layers[0].self_attn
    for name in ("q_proj", "k_proj"):
        getattr(attention, name).register_forward_hook(keep(name))
    model(input_ids=words(0))
    causal = np.tril(np.ones((12, 12), bool))
    allowed = causal & MASK.numpy().astype(bool)[:, None, None, :]
    scores = Scores.of(turned(seen["q_proj"]), turned(seen["k_proj"]), allowed)
    [found, _] = recorded(tmp_path, "Llama", "sdpa")
    assert found["attn_max_logit"] == pytest.approx(scores.values()["attn_max_logit"], rel=1e-4)
