"""Models of Hugging Face's transformers, two layers each."""

from __future__ import annotations

from functools import partial

import torch
import transformers as hf
from torch import nn

from tests.libraries.case import N_WORDS, Batch, Case, images, language, own_loss, seeded, words

__all__ = ["CASES"]

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
TEXT = {**SIZES, "vocab_size": N_WORDS, "max_position_embeddings": 32}
NO_SPECIAL_WORDS = {"bos_token_id": None, "eos_token_id": None}


def gpt2() -> nn.Module:
    config = hf.GPT2Config(
        vocab_size=N_WORDS, n_positions=32, n_embd=32, n_layer=2, n_head=4, **NO_SPECIAL_WORDS
    )
    return hf.GPT2LMHeadModel(config)


def bert() -> nn.Module:
    return hf.BertForMaskedLM(hf.BertConfig(**TEXT))


def llama() -> hf.PreTrainedModel:
    return hf.LlamaForCausalLM(
        hf.LlamaConfig(**TEXT, num_key_value_heads=2, attention_dropout=0.1, use_cache=False)
    )


def checkpointed_llama(reentrant: bool) -> nn.Module:
    model = llama()
    model.activation_checkpointing_enable(
        activation_checkpointing_kwargs={"use_reentrant": reentrant}
    )
    return model


def t5() -> nn.Module:
    config = hf.T5Config(
        vocab_size=N_WORDS,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return hf.T5ForConditionalGeneration(config)


def mixtral() -> nn.Module:
    config = hf.MixtralConfig(
        **TEXT, num_key_value_heads=2, num_local_experts=4, output_router_logits=True
    )
    return hf.MixtralForCausalLM(config)


def mamba() -> nn.Module:
    config = hf.MambaConfig(
        vocab_size=N_WORDS, hidden_size=32, state_size=4, num_hidden_layers=2, **NO_SPECIAL_WORDS
    )
    return hf.MambaForCausalLM(config)


def vit() -> nn.Module:
    config = hf.ViTConfig(**SIZES, image_size=16, patch_size=4, hidden_dropout_prob=0.1)
    return hf.ViTForImageClassification(config)


def whisper() -> nn.Module:
    config = hf.WhisperConfig(
        vocab_size=N_WORDS,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=16,
        max_target_positions=16,
        dropout=0.1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return hf.WhisperForConditionalGeneration(config)


def translated(step: int) -> Batch:
    return {"input_ids": words(step), "labels": words(step + 100)}


def pictured(step: int) -> Batch:
    return {"pixel_values": images(step, 16), "labels": torch.tensor([0, 1])}


def spoken(step: int) -> Batch:
    return {"input_features": torch.randn(2, 8, 32, generator=seeded(step)), "labels": words(step)}


CASES = {
    "GPT-2": Case(gpt2, language, own_loss, modules=0.9),
    "BERT": Case(bert, language, own_loss, modules=0.9),
    "Llama": Case(llama, language, own_loss),
    "Llama, checkpointed": Case(
        partial(checkpointed_llama, reentrant=False), language, own_loss, plain=llama
    ),
    "Llama, checkpointed by the reentrant way": Case(
        partial(checkpointed_llama, reentrant=True), language, own_loss, plain=llama
    ),
    "T5": Case(t5, translated, own_loss, modules=0.95),
    "Mixtral": Case(mixtral, language, own_loss),
    "Mamba": Case(mamba, language, own_loss, modules=0.7),  # the mixer uses its layers' weights
    "ViT": Case(vit, pictured, own_loss),
    "Whisper": Case(whisper, spoken, own_loss, parameters=0.95),  # positions are frozen
}
