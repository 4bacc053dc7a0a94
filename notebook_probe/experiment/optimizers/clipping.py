"""Clipping of gradients: each element, or all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from notebook_probe.checks import positive_number
from notebook_probe.errors import NonFiniteGradientError, near
from notebook_probe.train.trainer.clipping import OnNonfinite

__all__ = ["Clip", "ClippingMethod", "global_norm"]

ClippingMethod: TypeAlias = Literal["value", "norm"]


def global_norm(gradients: Sequence[Tensor]) -> float:
    """``sqrt(Σ g²)`` over all elements of all gradients; 0 of none.

    In float32 or wider, and again in float64 where that is not finite: finite gradients have a
    finite norm.

    Examples
    --------
    >>> global_norm([torch.tensor([3.0]), torch.tensor([[4.0]])])
    5.0
    """
    if not gradients:
        return 0.0
    norm = float(_norm([_at_least(value, torch.float32) for value in gradients]))
    if math.isfinite(norm):
        return norm
    # Squares of finite float32 gradients can overflow, and those of float64 only beyond 1e154.
    return float(_norm([_at_least(value, torch.float64) for value in gradients]))


def _at_least(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value.to(torch.promote_types(value.dtype, dtype))


def _norm(gradients: Sequence[Tensor]) -> Tensor:
    """Return `torch.nn.utils.get_total_norm`, which older torches lack."""
    first = gradients[0].device
    # Parameters may be on several devices; the norms are scalars, so moving them is cheap.
    norms = [torch.linalg.vector_norm(value).to(first) for value in gradients]
    return torch.linalg.vector_norm(torch.stack(norms))


class Clip:
    """Clips gradients in place.

    ``"value"`` clips each element to ``[-v, v]``; ``"norm"`` scales all gradients by
    ``v / max(global norm, v)``. A parameter without a gradient is left out.

    Parameters
    ----------
    method : "value" or "norm"
    value : float
        v, positive.
    on_nonfinite : "raise" or "skip"
        Action if the norm is NaN or infinite: raise, or skip the update.
    """

    def __init__(self, method: str, value: float, on_nonfinite: OnNonfinite) -> None:
        if method not in ("value", "norm"):
            raise ValueError(
                f"clipping_method={method!r}; allowed: 'value', 'norm'; "
                f"{near(str(method), ['value', 'norm'])}"
            )
        value = positive_number("clipping_value", value)
        if on_nonfinite not in ("raise", "skip"):
            raise ValueError(f"on_nonfinite={on_nonfinite!r}; allowed: 'raise', 'skip'")
        self._method, self._value, self._on_nonfinite = method, value, on_nonfinite

    def __repr__(self) -> str:
        return f"{self._method} {self._value:g}"

    def __call__(self, gradients: Sequence[Tensor]) -> bool:
        """Clip in place; False where the update is to be left out.

        Raises
        ------
        NonFiniteGradientError
        """
        if self._method == "value":
            # Element by element, a NaN stays where it is and affects no other gradient.
            for gradient in gradients:
                gradient.clamp_(-self._value, self._value)
            return True
        norm = global_norm(gradients)
        if not math.isfinite(norm):
            return self._not_finite(norm)
        if norm > self._value:
            for gradient in gradients:
                # Exactly v / norm; torch's clip_grad_norm_ divides by norm + 1e-6.
                gradient.mul_(self._value / norm)
        return True

    def _not_finite(self, norm: float) -> bool:
        if self._on_nonfinite == "skip":
            return False
        raise NonFiniteGradientError(
            f"the norm of the gradients is {norm}, which cannot be scaled to "
            f"{self._value:g}; allowed: finite gradients, or on_nonfinite='skip', which leaves "
            f"such updates out"
        )
