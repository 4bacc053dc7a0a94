"""Models of transformers, two layers each, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["TRANSFORMERS"]

Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]

N_WORDS = 50
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
NO_SPECIAL_WORDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
TEXT = {**SIZES, "vocab_size": N_WORDS, "max_position_embeddings": 32}
DECODER = {**TEXT, **NO_SPECIAL_WORDS, "num_key_value_heads": 2}


def words(n: int = 8) -> Tensor:
    return torch.ones(2, n, dtype=torch.long)


def of_words(model: str, config: str, options: dict[str, Any], labels: bool = True) -> Made:
    """A model that reads words, and compares what it gives with words."""
    import transformers as hf

    made = getattr(hf, model)(getattr(hf, config)(**options))
    return made, (), {"input_ids": words()} | ({"labels": words()} if labels else {})


def whisper() -> Made:
    import transformers as hf

    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in _SIDE.items()}
    config = hf.WhisperConfig(
        vocab_size=N_WORDS,
        num_mel_bins=8,
        d_model=32,
        max_source_positions=16,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        **sizes,
    )
    given = {"input_features": torch.zeros(2, 8, 32), "labels": words()}
    return hf.WhisperForConditionalGeneration(config), (), given


def wav2vec2() -> Made:
    import transformers as hf

    config = hf.Wav2Vec2Config(
        **SIZES,
        vocab_size=N_WORDS,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    return hf.Wav2Vec2ForCTC(config), (), {"input_values": torch.zeros(2, 1600)}


def clip() -> Made:
    import transformers as hf

    text = hf.CLIPTextConfig(**TEXT, eos_token_id=2)
    config = hf.CLIPConfig(
        text_config=text.to_dict(),
        vision_config=hf.CLIPVisionConfig(**SIZES, image_size=32, patch_size=8).to_dict(),
        projection_dim=16,
    )
    return (
        hf.CLIPModel(config),
        (),
        {"input_ids": words(), "pixel_values": torch.zeros(2, 3, 32, 32)},
    )


def vit() -> Made:
    import transformers as hf

    config = hf.ViTConfig(**SIZES, image_size=32, patch_size=8)
    return hf.ViTForImageClassification(config), (), {"pixel_values": torch.zeros(2, 3, 32, 32)}


_SIDE = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
_GPT2 = {"vocab_size": N_WORDS, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}
_T5 = {"vocab_size": N_WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
_BART = {"vocab_size": N_WORDS, "d_model": 32, "max_position_embeddings": 32} | {
    f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in _SIDE.items()
}
_MAMBA = {"vocab_size": N_WORDS, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2}

TRANSFORMERS: dict[str, Callable[[], Made]] = {
    "GPT-2": partial(of_words, "GPT2LMHeadModel", "GPT2Config", {**_GPT2, **NO_SPECIAL_WORDS}),
    "BERT": partial(of_words, "BertForMaskedLM", "BertConfig", TEXT),
    "RoBERTa": partial(of_words, "RobertaForMaskedLM", "RobertaConfig", TEXT),
    "DistilBERT": partial(
        of_words,
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": N_WORDS, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
    ),
    "Llama": partial(of_words, "LlamaForCausalLM", "LlamaConfig", DECODER),
    "Mistral": partial(of_words, "MistralForCausalLM", "MistralConfig", DECODER),
    "Qwen2": partial(of_words, "Qwen2ForCausalLM", "Qwen2Config", DECODER),
    "Gemma": partial(of_words, "GemmaForCausalLM", "GemmaConfig", {**DECODER, "head_dim": 8}),
    "Mixtral": partial(
        of_words, "MixtralForCausalLM", "MixtralConfig", {**DECODER, "num_local_experts": 4}
    ),
    "Mamba": partial(of_words, "MambaForCausalLM", "MambaConfig", {**_MAMBA, **NO_SPECIAL_WORDS}),
    "T5": partial(
        of_words, "T5ForConditionalGeneration", "T5Config", {**_T5, "decoder_start_token_id": 0}
    ),
    "BART": partial(of_words, "BartForConditionalGeneration", "BartConfig", _BART),
    "Whisper": whisper,
    "wav2vec 2.0": wav2vec2,
    "CLIP": clip,
    "ViT": vit,
}
