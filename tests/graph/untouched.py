"""Everything of a model, and of the process, that building a graph must leave as it is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def state_of(model: nn.Module) -> dict[str, Any]:
    """Bits of parameters, buffers and gradients; modes, hooks, attributes; random generators."""
    modules = dict(model.named_modules())
    return {
        "parameters": {name: _bits(one) for name, one in model.named_parameters()},
        "buffers": {name: _bits(one) for name, one in model.named_buffers()},
        "identities": {
            path: {
                name: [(key, id(one)) for key, one in value.items()]
                if isinstance(value, dict)
                else id(value)
                for name, value in vars(module).items()
            }
            for path, module in modules.items()
        },
        "gradients": {
            name: None if one.grad is None else _bits(one.grad)
            for name, one in model.named_parameters()
        },
        "trained": {name: one.requires_grad for name, one in model.named_parameters()},
        "modes": {path: module.training for path, module in modules.items()},
        "hooks": {
            path: [[*vars(module)[kind].items()] for kind in HOOKS]
            for path, module in modules.items()
        },
        "random": (
            torch.get_rng_state().tolist(),
            repr(np.random.get_state()),  # noqa: NPY002
            random.getstate(),
        ),
        "grad_mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "compiled": {name: dict(one) for name, one in counters.items() if one},
    }


def assert_unchanged(model: nn.Module, before: dict[str, Any]) -> None:
    after = state_of(model)
    for name, value in before.items():
        assert after[name] == value, name


def _bits(tensor: Tensor) -> tuple[Any, ...]:
    plain = tensor.detach().cpu().contiguous()
    return (
        id(tensor),
        tensor.data_ptr(),
        plain.view(torch.uint8).numpy().tobytes() if (plain.dim()) else plain.numpy().tobytes(),
    )
