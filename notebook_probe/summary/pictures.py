"""Pictures of one size under one name, however large the batches are."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from notebook_probe.summary.pixels import MOST_ELEMENTS, as_bytes, fitting, tiled

__all__ = ["Pictures"]


class Pictures:
    """Make pictures, each as large as the first one of its name.

    Examples
    --------
    >>> import torch
    >>> pictures = Pictures()
    >>> [tuple(pictures.of("seen", torch.rand(n, 3, 4, 4)).shape) for n in (16, 10)]
    [(8, 32, 3), (8, 32, 3)]
    """

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}

    def of(self, name: str, images: Tensor) -> Tensor:
        """Return the picture of a batch (n, 1 or 3, height, width), padded with black.

        The first images, where there is no room for all; of a single one that is too large every
        second pixel, or third.
        """
        values = as_bytes(images)
        n = fitting(tuple(values.shape))
        while not n:
            apart = next(i for i in range(2, 1 << 20) if _size(values, i) <= MOST_ELEMENTS)
            values = values[:, :, ::apart, ::apart]
            n = fitting(tuple(values.shape))
        picture = tiled(values[:n])
        # Arrays of one name have one shape in the record.
        height, width = self._sizes.setdefault(name, (picture.shape[0], picture.shape[1]))
        picture = picture[:height, :width]
        below, beside = height - picture.shape[0], width - picture.shape[1]
        return F.pad(picture, (0, 0, 0, beside, 0, below)).contiguous()


def _size(images: Tensor, apart: int) -> int:
    """Numbers in a picture of one image, for pixels at regular intervals."""
    return 3 * -(-images.shape[2] // apart) * -(-images.shape[3] // apart)
