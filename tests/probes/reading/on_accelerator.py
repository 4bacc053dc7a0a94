"""What is measured of a model on the pretended accelerator, and its loss."""

from __future__ import annotations

import math

from torch import Tensor, nn

from notebook_probe.probes.reading import closed_steps

INPUT = ["input_norm", "input_mean", "input_std", "input_grad_norm"]
OUTPUT = ["output_norm", "output_mean", "output_std", "zero_fraction", "nonfinite_fraction"]
FORWARD = [*INPUT, *OUTPUT, "output_grad_norm"]
WEIGHT = ["weight_norm", "grad_norm", "update_ratio", "grad_raw_norm"]


def never_by_itself() -> None:
    """No copy because time has passed: only what is asked for."""
    closed_steps.COPY_S = math.inf


def everywhere(model: nn.Module) -> dict[str, list[str]]:
    leaves = [path for path, module in model.named_modules() if path and not module._modules]
    parameters = [name for name, _ in model.named_parameters()]
    return {**dict.fromkeys(leaves, FORWARD), **dict.fromkeys(parameters, WEIGHT)}


def loss_on(output: Tensor) -> Tensor:
    return (output - 0.3).square().mean()
