"""Models of torchvision and timm, with random weights, and small pictures for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

__all__ = ["TIMM", "TORCHVISION", "without_kernels"]

Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def without_kernels() -> None:
    """Let torchvision be imported where its own kernels, built for CUDA, cannot be loaded."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


_kept: list[Any] = []  # what is defined goes with its library


def of_torchvision(name: str, size: int, **options: Any) -> Made:
    """A model by the name under which torchvision lists it."""
    import torchvision

    model = torchvision.models.get_model(name, weights=None, **options)
    return model, (torch.zeros(2, 3, size, size),), {}


def of_video(name: str) -> Made:
    import torchvision

    return torchvision.models.get_model(name, weights=None), (torch.zeros(1, 3, 4, 32, 32),), {}


def of_flow(name: str) -> Made:
    import torchvision

    frames = torch.zeros(1, 3, 128, 128)
    return torchvision.models.get_model(name, weights=None), (frames, frames.clone()), {}


def of_timm(name: str, size: int = 64, **options: Any) -> Made:
    """A model by the name under which timm lists it."""
    import timm

    return timm.create_model(name, **options), (torch.zeros(2, 3, size, size),), {}


_SMALL = (
    "alexnet vgg11_bn resnet18 resnet50 resnext50_32x4d densenet121 mobilenet_v2 "
    "mobilenet_v3_small efficientnet_b0 shufflenet_v2_x0_5 squeezenet1_0 mnasnet0_5 "
    "regnet_y_400mf convnext_tiny swin_t"
)
_whole = {"weights_backbone": None}
TORCHVISION: dict[str, Callable[[], Made]] = {
    **{name: partial(of_torchvision, name, 64) for name in _SMALL.split()},
    "googlenet": partial(of_torchvision, "googlenet", 96, init_weights=False),
    "inception_v3": partial(of_torchvision, "inception_v3", 299, init_weights=False),
    "vit_b_16": partial(of_torchvision, "vit_b_16", 224),
    "maxvit_t": partial(of_torchvision, "maxvit_t", 224),
    "fcn_resnet50": partial(of_torchvision, "fcn_resnet50", 64, **_whole),
    "deeplabv3_mobilenet_v3_large": partial(
        of_torchvision, "deeplabv3_mobilenet_v3_large", 64, **_whole
    ),
    "r3d_18": partial(of_video, "r3d_18"),
    "raft_small": partial(of_flow, "raft_small"),
}

_OF_64 = (
    "resnet26 seresnet50 resnest14d nf_resnet26 repvgg_a0 ghostnet_100 dla34 hrnet_w18_small "
    "tf_efficientnet_lite0 edgenext_xx_small poolformer_s12 mobilevit_xs convnextv2_atto"
)
_OF_224 = (
    "vit_tiny_patch16_224 deit_tiny_patch16_224 mixer_s32_224 cait_xxs24_224 "
    "xcit_nano_12_p16_224 levit_128s coat_lite_tiny pvt_v2_b0 swin_tiny_patch4_window7_224"
)
TIMM: dict[str, Callable[[], Made]] = {
    **{name: partial(of_timm, name) for name in _OF_64.split()},
    **{name: partial(of_timm, name, 224) for name in _OF_224.split()},
}

without_kernels()
