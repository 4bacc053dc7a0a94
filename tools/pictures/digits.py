"""The data of the pictures: handwritten digits, 8 x 8 pixels, which scikit-learn brings along."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

__all__ = ["digits"]


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Images as rows of 64 numbers from 0 to 1, and which digit each shows."""
    from sklearn.datasets import load_digits  # a second, for those who only list the pictures

    data = load_digits()
    return torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
