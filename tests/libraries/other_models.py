"""Models of diffusers, torch_geometric, x-transformers and mambapy."""

from __future__ import annotations

import torch
from diffusers import AutoencoderKL, UNet2DModel
from mambapy.mamba import Mamba, MambaConfig
from torch import nn
from torch_geometric.nn import GCN
from x_transformers import Decoder, TransformerWrapper

from tests.libraries.case import N_WORDS, Batch, Case, images, seeded, words

__all__ = ["CASES"]


def unet() -> nn.Module:
    return UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        dropout=0.1,
    )


def vae() -> nn.Module:
    return AutoencoderKL(
        sample_size=16,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
    )


def gcn() -> nn.Module:
    return GCN(8, 16, num_layers=3, out_channels=3, dropout=0.2, norm="BatchNorm")


def x_transformer() -> nn.Module:
    layers = Decoder(
        dim=32, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True, attn_dropout=0.1, ff_dropout=0.1
    )
    return TransformerWrapper(num_tokens=N_WORDS, max_seq_len=32, attn_layers=layers)


def mamba() -> nn.Module:
    return Mamba(MambaConfig(d_model=16, n_layers=2, d_state=4))


def noisy(step: int) -> Batch:
    return {"sample": images(step, 8), "timestep": torch.tensor([3, 7 + step])}


def sampled(step: int) -> Batch:
    return {"sample": images(step, 16), "sample_posterior": True}


def graph(step: int) -> Batch:
    """Ten nodes, forty edges."""
    edges = torch.randint(0, 10, (2, 40), generator=seeded(step))
    return {"x": torch.randn(10, 8, generator=seeded(step)), "edge_index": edges}


CASES = {
    "U-Net": Case(unet, noisy),
    "VAE": Case(vae, sampled),
    "GCN": Case(gcn, graph, modules=0.85),
    "x-transformers": Case(x_transformer, lambda step: {"x": words(step)}, modules=0.9),
    "mambapy": Case(
        mamba, lambda step: {"x": torch.randn(2, 8, 16, generator=seeded(step))}, modules=0.85
    ),
}
