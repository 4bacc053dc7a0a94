"""Terms that a forward pass adds to the loss: regularisers, balances of routers, commitments."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["add_loss", "collected_losses", "drop_losses", "get_losses"]


class _Terms(threading.local):
    """Loss terms of the step on this thread; None outside of steps."""

    now: list[Tensor] | None = None


_terms = _Terms()


@torch.compiler.disable  # type: ignore[untyped-decorator]
def add_loss(term: Tensor) -> None:
    """Add a term to the loss of the step that is running; one of many numbers adds its mean.

    Called in a forward pass or in the loss function of a `Trainer`. It does nothing outside of its
    steps, nor where a segment is computed again for its gradients.

    Examples
    --------
    >>> class Sparse(torch.nn.Linear):
    ...     def forward(self, x):
    ...         out = super().forward(x)
    ...         add_loss(1e-3 * out.abs())
    ...         return out
    """
    if not isinstance(term, Tensor):
        raise TypeError(f"add_loss({type(term).__name__}): a tensor is expected")
    terms = _terms.now
    if terms is not None and torch._C._current_graph_task_id() == -1:  # no recomputation
        terms.append(term if term.ndim == 0 else term.mean())


@torch.compiler.disable  # type: ignore[untyped-decorator]
def get_losses() -> Tensor | None:
    """Σ of the terms that the running step has so far; None when there is none."""
    terms = _terms.now
    return torch.stack([*terms]).sum() if terms else None


def drop_losses() -> None:
    """Forget the terms that the running step has so far."""
    if _terms.now is not None:
        _terms.now.clear()


@contextmanager
def collected_losses() -> Iterator[list[Tensor]]:
    """Collect loss terms added inside, on this thread; the outer collection waits."""
    before, _terms.now = _terms.now, []
    try:
        yield _terms.now
    finally:
        _terms.now = before
