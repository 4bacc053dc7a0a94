"""Language models are run once more on a probe batch, and train on as if they had not been."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import made
from tests.probes.parity import differing, everything

pytestmark = pytest.mark.libraries


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 32}
    return GPT2LMHeadModel(GPT2Config(**small, bos_token_id=0, eos_token_id=0))


def checkpointed_llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            vocab_size=50,
            use_cache=False,
        )
    )
    model.activation_checkpointing_enable()
    return model


def trained(model: Any, words: Tensor) -> dict[str, bytes]:
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3)
    torch.manual_seed(3)
    for _ in range(3):
        optimizer.zero_grad()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
    return everything(model, [optimizer])


def loss_of(output: Any, targets: Any) -> Tensor:
    loss: Tensor = output.loss
    return loss


@pytest.mark.parametrize("build", [gpt2, checkpointed_llama])
def test_a_language_model_knows_its_own_loss(
    build: Callable[[], nn.Module], tmp_path: Path
) -> None:
    words = torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(1))
    plain, model = made(build), made(build)
    probes = {"": ["sharpness", "hessian_trace", "feature_drift"]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        run.probe_batch({"input_ids": words, "labels": words}, None, loss_of)
        left = trained(model, words)
    assert differing(trained(plain, words), left) == []
    assert np.isfinite(run.series("", "sharpness")).all()
    assert not run.status().errors
