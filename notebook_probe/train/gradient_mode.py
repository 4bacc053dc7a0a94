"""The gradient mode, which an interrupt within torch's own code leaves off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from notebook_probe.uninterrupted import uninterrupted

__all__ = ["gradient_mode_kept"]


@contextmanager
def gradient_mode_kept() -> Iterator[None]:
    """Restore the gradient mode at the end; an interrupted ``torch.no_grad()`` may leave it off.

    Examples
    --------
    >>> with gradient_mode_kept():
    ...     _ = torch.set_grad_enabled(False)
    >>> torch.is_grad_enabled()
    True
    """
    before = torch.is_grad_enabled()
    try:
        yield
    finally:
        with uninterrupted:
            torch.set_grad_enabled(before)
