"""Clipping gradients to a norm, and what happens where they have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from notebook_probe.checks import is_number
from notebook_probe.errors import NonFiniteGradientError

__all__ = ["Clipping", "OnNonfinite"]

OnNonfinite: TypeAlias = Literal["raise", "skip"]


class Clipping:
    """Scales gradients to at most a norm.

    Parameters
    ----------
    max_norm : float
        Positive.
    on_nonfinite : "raise" or "skip"
        Action if the norm is NaN or infinite, with which torch would make every gradient NaN:
        raise, or skip the update and count it.
    """

    def __init__(self, max_norm: float, on_nonfinite: OnNonfinite) -> None:
        if not (is_number(max_norm) and max_norm > 0):
            raise ValueError(f"clip={max_norm!r}; allowed: a positive norm, or None")
        if on_nonfinite not in ("raise", "skip"):
            raise ValueError(f"on_nonfinite={on_nonfinite!r}; allowed: 'raise', 'skip'")
        self._max_norm, self._on_nonfinite = float(max_norm), on_nonfinite

    def __call__(self, parameters: Iterable[Tensor]) -> bool:
        """Clip in place; False where the update is to be left out.

        Raises
        ------
        NonFiniteGradientError
        """
        try:
            # A norm that is not finite would turn gradients into zeros and NaN.
            torch.nn.utils.clip_grad_norm_(parameters, self._max_norm, error_if_nonfinite=True)
        except RuntimeError as error:
            if self._on_nonfinite == "skip":
                return False
            raise NonFiniteGradientError(
                f"the norm of the gradients is not finite, and clip={self._max_norm:g} cannot "
                f"scale that; allowed: finite gradients, or on_nonfinite='skip', which leaves such "
                f"updates out"
            ) from error
        return True

    def clip_finite(self, parameters: Sequence[Tensor]) -> None:
        """Clip in place unless something is not finite, which a gradient scaler skips."""
        gradients = [value.grad for value in parameters if value.grad is not None]
        if all(bool(torch.isfinite(gradient).all()) for gradient in gradients):
            self(parameters)
