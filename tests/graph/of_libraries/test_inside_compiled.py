"""Models that people use, compiled: graphs, losses and weights as unwatched, values of a twin."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.utils._pytree import tree_leaves, tree_map_only

import notebook_probe as nbp
from benchmarks.graphs.vision import of_timm, of_torchvision
from tests.probes.inside.compiled_models import n_breaks, n_graphs

pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

N_STEPS = 2
QUANTITIES = ("output_norm", "output_grad_norm", "output_std", "output_channel_rms", "input_norm")
LANGUAGE = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
DECODER = {**LANGUAGE, "num_key_value_heads": 2, "use_cache": False}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT = {
    "vocab_size": 64, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16,
    "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "use_cache": False,
    "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
T5 = {
    "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "dropout_rate": 0.0, "use_cache": False, "decoder_start_token_id": 0,
}  # fmt: skip
VIT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "image_size": 16, "patch_size": 8, **STILL,
}  # fmt: skip


def words(step: int) -> dict[str, Tensor]:
    drawn = torch.randint(0, 64, (2, 8), generator=torch.Generator().manual_seed(step))
    return {"input_ids": drawn, "labels": drawn}


def pictures(step: int, size: int, name: str = "pixel_values") -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {name: torch.randn(4, 3, size, size, generator=generator)}


def of_transformers(model: str, config: str, options: dict[str, Any]) -> nn.Module:
    import transformers as hf

    made: nn.Module = getattr(hf, model)(getattr(hf, config)(**options))
    return made


def of_pictures(make: Callable[..., Any], name: str, **options: Any) -> nn.Module:
    made: nn.Module = make(name, **options)[0]
    return made


photo = partial(pictures, size=32, name="x")
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], dict[str, Tensor]]]] = {
    "GPT-2": (
        partial(of_transformers, "GPT2LMHeadModel", "GPT2Config", GPT),
        lambda step: {"input_ids": words(step)["input_ids"]},  # its own loss logs a warning
    ),
    "BERT": (
        partial(of_transformers, "BertForMaskedLM", "BertConfig", {**LANGUAGE, **STILL}),
        words,
    ),
    "Llama": (partial(of_transformers, "LlamaForCausalLM", "LlamaConfig", DECODER), words),
    "Qwen2": (partial(of_transformers, "Qwen2ForCausalLM", "Qwen2Config", DECODER), words),
    "T5": (partial(of_transformers, "T5ForConditionalGeneration", "T5Config", T5), words),
    "ViT": (
        partial(of_transformers, "ViTForImageClassification", "ViTConfig", VIT),
        partial(pictures, size=16),
    ),
    "timm ViT": (
        partial(
            of_pictures, of_timm, "vit_tiny_patch16_224",
            img_size=32, embed_dim=24, depth=2, num_heads=2,
        ),
        photo,
    ),
    "timm ConvNeXt": (
        partial(
            of_pictures, of_timm, "convnext_atto", depths=(1, 1, 1, 1), dims=(8, 8, 16, 16)
        ),
        photo,
    ),
    "SqueezeNet": (
        partial(of_pictures, of_torchvision, "squeezenet1_1", size=32, dropout=0.0),
        photo,
    ),
    "ResNet-18": (
        partial(of_pictures, of_torchvision, "resnet18", size=64),
        partial(pictures, size=64, name="x"),  # of less, its last norms are of one number each
    ),
}  # fmt: skip


def loss_of(output: Any) -> Tensor:
    loss = getattr(output, "loss", None)
    logits = getattr(output, "logits", output)
    return loss if loss is not None else (logits - 0.3).square().mean()


def trained(
    model: nn.Module, called: Callable[..., Any], batch: Callable[[int], dict[str, Tensor]]
) -> list[float]:
    optimizer, losses = SGD(model.parameters(), lr=0.01), []
    for step in range(N_STEPS):
        optimizer.zero_grad()
        loss = loss_of(called(**batch(step)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def norms_of(
    twin: nn.Module, batch: Callable[[int], dict[str, Tensor]]
) -> dict[tuple[str, str], list[float]]:
    """Norms of what modules give, and of its gradients, in each step of an eager twin."""
    squares: dict[tuple[str, str], list[float]] = {}
    now = [0]

    def add(key: tuple[str, str], tensor: Tensor) -> None:
        found = squares.setdefault(key, [0.0] * N_STEPS)
        found[now[0]] += float(np.square(tensor.detach().numpy()).sum())

    def listen(place: str) -> Callable[..., None]:
        def hear(module: nn.Module, args: Any, output: Any) -> None:
            for one in tree_leaves(output):
                if isinstance(one, Tensor) and one.is_floating_point():
                    add((place, "output_norm"), one)
                    if one.requires_grad:
                        one.register_hook(partial(add, (place, "output_grad_norm")))

        return hear

    for place, module in twin.named_modules():
        module.register_forward_hook(listen(place))
    optimizer = SGD(twin.parameters(), lr=0.01)
    for step in range(N_STEPS):
        now[0] = step
        optimizer.zero_grad()
        given = tree_map_only(Tensor, _wide, batch(step))
        loss_of(twin(**given)).backward()
        optimizer.step()
    return {key: [*np.sqrt(found)] for key, found in squares.items() if key[0]}


def _wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


REGIONS = {"GPT-2": "transformer.h", "Llama": "model.layers", "timm ViT": "blocks"}
"""Layers that are compiled one by one, as libraries advise for large models."""


def by_regions(model: nn.Module, place: str) -> nn.Module:
    for layer in model.get_submodule(place).children():
        layer.compile(backend="aot_eager")
    return model


def whole(model: nn.Module) -> Any:
    return torch.compile(model, backend="aot_eager")


WAYS = [
    *(pytest.param(name, whole, id=f"{name} whole") for name in MODELS),
    *(
        pytest.param(name, partial(by_regions, place=place), id=f"{name} by layers")
        for name, place in REGIONS.items()
    ),
]


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_compiled_model_has_its_graphs_its_bits_and_the_values_of_a_twin(
    name: str, way: Callable[[nn.Module], Any], tmp_path: Path
) -> None:
    make, batch = MODELS[name]
    torch.manual_seed(0)
    alone = make().train()
    model, twin = copy.deepcopy(alone), copy.deepcopy(alone).double()
    before, n_broken = n_graphs(), n_breaks()
    left = trained(alone, way(alone), batch)
    n_plain = n_graphs() - before
    assert n_plain == 1 or way is not whole
    torch._dynamo.reset()
    with nbp.watch(
        model, store=tmp_path / "run.zarr", probes={"*": [*QUANTITIES]}, budget=None
    ) as run:
        assert trained(model, way(model), batch) == left
        assert n_graphs() - before - n_plain == n_plain
        assert n_breaks() == n_broken
        run.controls.settle()
        assert not run.status().errors
        for (place, quantity), values in norms_of(twin, batch).items():
            found = run.series(place, quantity).values
            np.testing.assert_allclose(
                found, values, rtol=1e-4, atol=1e-6, err_msg=f"{quantity} at {place}"
            )
    assert all(map(torch.equal, alone.parameters(), model.parameters()))
