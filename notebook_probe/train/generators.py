"""The random generators of a process: their states read, and put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["generator_states", "same_generators", "set_generators"]


def generator_states() -> dict[str, Any]:
    """States of torch's, Python's and numpy's generators, as ``weights_only=True`` reads them.

    numpy's only where numpy was imported, an accelerator's only where it was used. The words of a
    generator are one tensor: a checkpoint copies them at once, not one by one.
    """
    version, words, gauss = random.getstate()
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "python": (version, torch.tensor(words, device="cpu"), gauss),
    }
    # Asking for its states would start CUDA, which takes memory of the device.
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        states["numpy"] = [kind, torch.from_numpy(keys.astype("int64")), *rest]
    return states


def set_generators(states: Mapping[str, Any]) -> None:
    """Put back what `generator_states` gave, also where the words are lists, as they once were."""
    torch.set_rng_state(states["torch"])
    version, words, gauss = states["python"]
    random.setstate((version, tuple(torch.as_tensor(words, device="cpu").tolist()), gauss))
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states:
        import numpy as np

        kind, keys, *rest = states["numpy"]
        np.random.set_state((kind, np.asarray(keys, dtype=np.uint32), *rest))  # noqa: NPY002 (the global one)


@contextmanager
def same_generators() -> Iterator[None]:
    """Restore the generators after the context, whatever is drawn inside."""
    states = generator_states()
    try:
        yield
    finally:
        set_generators(states)
