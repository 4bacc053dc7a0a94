"""A batch of images as one picture: bytes, eight in a row."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["MOST_ELEMENTS", "PER_ROW", "as_bytes", "checked", "fitting", "tiled"]

PER_ROW = 8
MOST_ELEMENTS = 1 << 20
"""Maximum elements of an array in the record."""


def checked(images: Tensor) -> Tensor:
    """Return the images unchanged if they are valid.

    Raises
    ------
    ValueError
        For another shape, and numbers that are not real.

    Examples
    --------
    >>> checked(torch.zeros(2, 5, 4, 4))
    Traceback (most recent call last):
    ...
    ValueError: a float32 tensor (2, 5, 4, 4); images are real numbers (n, 1 or 3, height, width)
    """
    if (
        images.ndim == 4
        and images.shape[1] in (1, 3)
        and images.numel()
        and not images.is_complex()
    ):
        return images
    dtype = str(images.dtype).removeprefix("torch.")
    raise ValueError(
        f"a {dtype} tensor {tuple(images.shape)}; images are real numbers "
        f"(n, 1 or 3, height, width)"
    )


def as_bytes(images: Tensor) -> Tensor:
    """Pixels as whole numbers from 0 to 255, on a scale for all images together.

    Bytes are not changed. If all values are in 0..1 the pixels are ``255 x``, otherwise ``255 (x -
    min) / (max - min)``; 0 if all are equal. A value that is not finite goes to the nearest end,
    NaN to 0.

    Examples
    --------
    >>> as_bytes(torch.tensor([0.0, 0.2, 1.0])), as_bytes(torch.tensor([-1.0, 0.0, 3.0]))
    (tensor([  0.,  51., 255.]), tensor([  0.,  64., 255.]))
    """
    if images.dtype == torch.uint8:
        return images.float()
    values = images.detach().double()
    finite = values.isfinite()
    low = values.where(finite, torch.inf).amin()
    high = values.where(finite, -torch.inf).amax()
    is_share = (low >= 0) & (high <= 1)
    low, high = torch.where(is_share, 0.0, low), torch.where(is_share, 1.0, high)
    # NaN becomes black, infinities white or black.
    scaled = ((values - low) * 255 / (high - low)).nan_to_num(0.0, 255.0, 0.0)
    return scaled.clamp(0, 255).round().float()


def fitting(shape: tuple[int, ...]) -> int:
    """Return how many images of a batch (n, channels, height, width) fit into a picture.

    Examples
    --------
    >>> fitting((128, 3, 32, 32)), fitting((64, 3, 224, 224)), fitting((1, 3, 2000, 2000))
    (128, 6, 0)
    """
    n, _, height, width = shape
    at_most = MOST_ELEMENTS // (3 * height * width)
    n_whole = at_most // PER_ROW * PER_ROW  # a row that is not full takes as much room
    return min(n, at_most if at_most < PER_ROW else n_whole)


def tiled(images: Tensor) -> Tensor:
    """Return one picture (rows, columns, 3) of images (n, 3 or 1, height, width), 8 per row.

    Examples
    --------
    >>> tiled(torch.ones(9, 1, 4, 5)).shape
    torch.Size([8, 40, 3])
    """
    n, channels, height, width = images.shape
    if channels == 1:
        images = images.expand(n, 3, height, width)
    columns = min(n, PER_ROW)
    rows = -(-n // columns)
    whole = F.pad(images, (0, 0, 0, 0, 0, 0, 0, rows * columns - n))
    grid = whole.reshape(rows, columns, 3, height, width)
    return grid.permute(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)
