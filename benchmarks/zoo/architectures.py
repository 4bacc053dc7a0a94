"""Architectures of libraries, by the names under which those list them, and small inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from benchmarks.graphs.vision import without_kernels

__all__ = ["LIBRARIES", "Architecture", "Made", "architectures_of"]


class Made(NamedTuple):
    """A model with random weights, and what its forward is given."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - never changed


@dataclass(frozen=True)
class Architecture:
    """An architecture of a library.

    Attributes
    ----------
    build : callable
        Makes it, the same each time that the generators are seeded alike.
    """

    library: str
    name: str
    build: Callable[[], Made]

    def count(self) -> int:
        """Return the number of its weights, without allocating them where that is possible."""
        try:
            with torch.device("meta"):
                model = self.build().model
        except Exception:  # it computes something as it is made
            model = self.build().model
        return sum(value.numel() for value in model.parameters())


def architectures_of(library: str) -> list[Architecture]:
    """Return all architectures of a library; none where it is not installed."""
    without_kernels()
    try:
        return [Architecture(library, *one) for one in LIBRARIES[library]()]
    except ImportError:
        return []


Named = tuple[str, Callable[[], Made]]

SMALL = 64
"""Pixels along the side of an image, where an architecture takes any."""


def _images(size: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, size, size, generator=generator, device="cpu")


def _of_timm() -> Iterator[Named]:
    import timm

    for name in timm.list_models():
        yield name, partial(_timm, name)


def _timm(name: str) -> Made:
    import timm

    model = timm.create_model(name)
    taken = model.pretrained_cfg
    n_channels, size, _ = taken.get("input_size", (3, 224, 224))
    if not taken.get("fixed_input_size"):
        size = max(SMALL, *taken.get("min_input_size", (0, 0))[-2:])
    return Made(model, (_images(size, 2, n_channels),))


def _of_torchvision() -> Iterator[Named]:
    from torchvision import models

    for module in (models, models.segmentation):
        for name in models.list_models(module=module):
            yield name, partial(_torchvision, name)
    for name in models.list_models(module=models.video):
        yield name, partial(_video, name)
    for name in models.list_models(module=models.optical_flow):
        yield name, partial(_flow, name)


def _torchvision(name: str) -> Made:
    from torchvision import models

    options: dict[str, Any] = {}
    if name in ("googlenet", "inception_v3"):
        options = {"init_weights": False}
    elif name.startswith(("fcn", "deeplab", "lraspp")):
        options = {"weights_backbone": None}
    size = {"inception_v3": 299, "googlenet": 96}.get(name, SMALL)
    if name.startswith(("vit_", "maxvit", "swin")):
        size = 224
    return Made(models.get_model(name, weights=None, **options), (_images(size, 2, 3),))


def _video(name: str) -> Made:
    from torchvision import models

    size, n_frames = (224, 16) if name.startswith(("mvit", "swin")) else (SMALL, 8)
    return Made(models.get_model(name, weights=None), (_images(size, 1, 3, n_frames),))


def _flow(name: str) -> Made:
    from torchvision import models

    return Made(models.get_model(name, weights=None), (_images(128, 1, 3), _images(128, 1, 3)))


PADDING = 2
"""Number of the word that pads; `_batch` draws none below 3."""

SIZES = {
    "hidden_size": 32,
    "d_model": 32,
    "n_embd": 32,
    "embedding_size": 32,
    "emb_dim": 32,
    "dim": 32,
    "word_embed_proj_dim": 32,
    "hidden_dim": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "ffn_dim": 48,
    "d_ff": 48,
    "d_kv": 8,
    "n_inner": 48,
    "dim_ff": 48,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_hidden_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "n_head": 4,
    "n_heads": 4,
    "num_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "head_dim": 8,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "image_size": 32,
    "patch_size": 8,
    "state_size": 4,
}
"""Attributes of a configuration of transformers that make it small; each has some of them."""


TASKS = (
    "",
    "CAUSAL_LM",
    "MASKED_LM",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "IMAGE_CLASSIFICATION",
    "AUDIO_CLASSIFICATION",
    "SEQUENCE_CLASSIFICATION",
    "TOKEN_CLASSIFICATION",
)
"""Lists of transformers: networks without a head, and those of each task with its loss."""


def _of_transformers() -> Iterator[Named]:
    from transformers.models.auto import modeling_auto

    kinds: dict[str, tuple[str, str]] = {}  # several kinds share one class
    for task in TASKS:
        listed = "_".join(["MODEL", *(["FOR", task] if task else []), "MAPPING_NAMES"])
        for kind, names in getattr(modeling_auto, listed).items():
            for name in [names] if isinstance(names, str) else names:
                kinds.setdefault(name, (kind, task))
    for name, (kind, task) in kinds.items():
        yield name, partial(_transformer, kind, name, task)


def _transformer(kind: str, name: str, task: str) -> Made:
    import transformers

    config = transformers.AutoConfig.for_model(kind)
    try:
        small = _small(config, SIZES)
    except Exception:  # its keys and values have as many heads as its queries
        small = _small(config, SIZES | {"num_key_value_heads": SIZES["num_attention_heads"]})
    for part in (small, *_parts(small)):  # else the classes of one padded batch are refused
        if hasattr(part, "pad_token_id") and part.pad_token_id is None:
            part.pad_token_id = PADDING
    model = getattr(transformers, name)._from_config(small, attn_implementation="eager")
    batch = _batch(model, small)
    if task and "labels" in inspect.signature(model.forward).parameters:
        batch["labels"] = _labels(task, batch)
    return Made(model, (), batch)


def _labels(task: str, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return one class of two for each sample, or for each word; or the words."""
    words = batch.get("input_ids")
    if words is None or task == "SEQUENCE_CLASSIFICATION":
        return torch.tensor([0, 1])
    return words % 2 if task == "TOKEN_CLASSIFICATION" else words


def _small(config: Any, sizes: Mapping[str, int]) -> Any:
    given = config.to_dict()
    smaller = {key: size for key, size in sizes.items() if isinstance(given.get(key), int)}
    for key, value in given.items():
        is_word = key.endswith(("token_id", "token_index")) and isinstance(value, int)
        if is_word and value >= sizes["vocab_size"]:
            smaller[key] = 1
    small = type(config)(**smaller)
    for part in getattr(config, "sub_configs", {}):
        if getattr(small, part, None) is not None:
            setattr(small, part, _small(getattr(small, part), sizes))
    return small


def _parts(config: Any) -> list[Any]:
    found = [getattr(config, part, None) for part in getattr(config, "sub_configs", {})]
    return [part for part in found if part is not None]


def _batch(model: Any, config: Any) -> dict[str, Any]:
    """Return two of each kind of input that the forward asks for."""
    generator = torch.Generator().manual_seed(0)
    taken, main = inspect.signature(model.forward).parameters, model.main_input_name
    words = torch.randint(3, SIZES["vocab_size"], (2, 12), generator=generator, device="cpu")
    given = {
        "input_ids": words,
        "pixel_values": _images(_side(config), 2, _channels(config)),
        "input_values": torch.randn(2, 16_000, generator=generator, device="cpu"),
    }
    batch = {key: value for key, value in given.items() if key in (main, "input_ids")}
    batch = {key: value for key, value in batch.items() if key in taken or key == main}
    if getattr(config, "is_encoder_decoder", False):
        batch["decoder_input_ids"] = words.flip(1)
    return batch


def _side(config: Any) -> int:
    found = [getattr(one, "image_size", None) for one in (config, _vision(config))]
    sizes = [size if isinstance(size, int) else size[0] for size in found if size]
    return sizes[0] if sizes else SMALL


def _channels(config: Any) -> int:
    found = [getattr(one, "num_channels", None) for one in (config, _vision(config))]
    return next((int(n) for n in found if isinstance(n, int)), 3)


def _vision(config: Any) -> Any:
    return getattr(config, "vision_config", None)


def _of_geometric() -> Iterator[Named]:
    from torch_geometric.nn import conv, models

    for module in (conv, models):
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, nn.Module):
                yield name, partial(_geometric, kind)


def _geometric(kind: type[nn.Module]) -> Made:
    """Make a layer or a network for graphs, of 20 nodes and 80 edges."""
    generator = torch.Generator().manual_seed(0)
    taken = inspect.signature(kind).parameters
    given = {key: size for key, size in GRAPH_SIZES.items() if key in taken}
    model = kind(**given)
    nodes = torch.randn(20, GRAPH_SIZES["in_channels"], generator=generator, device="cpu")
    edges = torch.randint(0, 20, (2, 80), generator=generator, device="cpu")
    return Made(model, (nodes, edges))


def _of_diffusers() -> Iterator[Named]:
    for name in DIFFUSION:
        yield name, partial(_diffusion, name)


def _diffusion(name: str) -> Made:
    import diffusers

    options, shapes = DIFFUSION[name]
    generator = torch.Generator().manual_seed(0)
    given = {
        key: torch.randn(shape, generator=generator, device="cpu") if shape else torch.tensor([3])
        for key, shape in shapes.items()
    }
    if "class_labels" in given:
        given["class_labels"] = torch.tensor([1])
    return Made(getattr(diffusers, name)(**options), (), given)


GRAPH_SIZES = {
    "in_channels": 8,
    "out_channels": 8,
    "hidden_channels": 16,
    "channels": 8,
    "num_layers": 2,
    "K": 2,
    "heads": 2,
    "dim": 2,
    "kernel_size": 2,
    "num_relations": 3,
}
TWO_BLOCKS = {"block_out_channels": (8, 16), "norm_num_groups": 4}
DIFFUSION: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "UNet2DModel": (
        {
            **TWO_BLOCKS,
            "sample_size": 8,
            "layers_per_block": 1,
            "attention_head_dim": 4,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        },
        {"sample": (1, 3, 8, 8), "timestep": ()},
    ),
    "UNet2DConditionModel": (
        {
            **TWO_BLOCKS,
            "sample_size": 8,
            "layers_per_block": 1,
            "cross_attention_dim": 8,
            "attention_head_dim": 4,
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        },
        {"sample": (1, 4, 8, 8), "timestep": (), "encoder_hidden_states": (1, 5, 8)},
    ),
    "AutoencoderKL": (
        {
            **TWO_BLOCKS,
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
        },
        {"sample": (1, 3, 16, 16)},
    ),
    "VQModel": (
        {
            **TWO_BLOCKS,
            "num_vq_embeddings": 16,
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
        },
        {"sample": (1, 3, 16, 16)},
    ),
    "DiTTransformer2DModel": (
        {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2, "sample_size": 8},
        {"hidden_states": (1, 4, 8, 8), "timestep": (), "class_labels": ()},
    ),
}
"""Options of networks of diffusers that make them small, and the shapes of what they are given."""

LIBRARIES: dict[str, Callable[[], Iterator[Named]]] = {
    "timm": _of_timm,
    "torchvision": _of_torchvision,
    "transformers": _of_transformers,
    "diffusers": _of_diffusers,
    "torch_geometric": _of_geometric,
}
