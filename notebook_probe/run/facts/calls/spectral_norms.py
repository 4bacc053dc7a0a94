"""Spectral norms that an evaluation divides by before a training call has estimated them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.spectral_norm import SpectralNorm

from notebook_probe.run.facts.context import FactContext

__all__ = ["SpectralNorms"]

FAR = 1.5
"""Times what is divided by, from where on the largest singular value is another one."""
N_ITERATIONS = 5


class SpectralNorms:
    """Estimates of the layers that `torch.nn.utils.spectral_norm` has changed.

    It begins with random vectors, which only calls in training mode improve.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules = context.modules
        self._findings, self._later = context.findings, context.later

    def evaluated(self, step: int) -> None:
        """Compare the estimates with better ones, at the first call in evaluation mode."""
        for path, module in self._modules().items():
            for hook in module._forward_pre_hooks.values():
                if isinstance(hook, SpectralNorm):
                    judge = partial(self._judge, path, step)
                    self._later.read([*_norms(module, hook)], judge)

    def _judge(self, path: str, step: int, read: list[float]) -> None:
        used, found = read
        if found > FAR * abs(used):
            words = {"used": f"{used:.2g}", "found": f"{found:.2g}"}
            self._findings.say("unsettled_spectral_norm", step, [path], words=words)


def _norms(module: nn.Module, hook: SpectralNorm) -> Iterator[Tensor]:
    """Yield the norm that an evaluation divides by, and a lower bound of the true one."""
    weight = getattr(module, f"{hook.name}_orig").detach()
    left, right = (getattr(module, f"{hook.name}_{side}").detach() for side in "uv")
    matrix = hook.reshape_weight_to_matrix(weight)
    yield left @ (matrix @ right)
    for _ in range(N_ITERATIONS):
        left = nn.functional.normalize(matrix @ right, dim=0, eps=hook.eps)
        right = nn.functional.normalize(matrix.t() @ left, dim=0, eps=hook.eps)
    yield torch.linalg.vector_norm(matrix @ right)
