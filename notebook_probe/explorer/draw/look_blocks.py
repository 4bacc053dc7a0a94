"""A kept tensor as maps that a panel paints: one for each channel, head or filter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.record.views.looks import OF_MODULE

__all__ = ["Maps", "maps_of"]

MOST_MAPS = 256
MOST_NUMBERS = 2**18
"""Maximum numbers of one tensor that are sent: 1 MB."""
MOST_SIDE = 512

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Maps:
    """Maps of equal size.

    Attributes
    ----------
    values : (map, row, column)
    places : list of int
        Channel, head or filter of each map.
    n_samples : int
        To choose from; 0 for tensors without a batch axis.
    note : str
        Note on values that were reduced or left out.
    """

    values: Floats
    places: list[int]
    n_samples: int
    note: str


def maps_of(tensor: str, array: Floats, sample: int = 0, places: list[int] | None = None) -> Maps:
    """Return the maps of one sample, or of the whole tensor if it has no batch axis.

    Parameters
    ----------
    tensor : str
        Name of the tensor: ``"output"``, ``"weight"``, ...
    array : numpy.ndarray
        Stored part of the tensor.
    sample : int
        Index among the stored samples; the last one if there are fewer.
    places : list of int, optional
        The maps to take; those with the largest norms by default, when there are too many.

    Examples
    --------
    >>> maps_of("output", np.ones((8, 16, 5, 5), np.float32)).values.shape
    (16, 5, 5)
    >>> maps_of("weight", np.ones((4, 3, 2, 2), np.float32)).note
    'norm over 3 inputs'
    """
    n_samples = len(array) if tensor not in OF_MODULE and array.ndim > 2 else 0
    if n_samples:
        array = array[min(sample, n_samples - 1)]
    stack, notes = _as_maps(tensor, array)
    chosen = _chosen(stack) if places is None else [at for at in places if at < len(stack)]
    if len(chosen) < len(stack):
        notes.append(f"+ {len(stack) - len(chosen)} more")
    values = stack[chosen]
    every = _every(values.shape)
    if every > 1:
        values = values[:, ::every, ::every]
        notes.append(f"every {_nth(every)} row and column is shown")
    return Maps(np.ascontiguousarray(values), chosen, n_samples, ", ".join(notes))


def _as_maps(tensor: str, array: Floats) -> tuple[Floats, list[str]]:
    if array.ndim == 4 and array.shape[1] > 1 and tensor in OF_MODULE:
        # float64, as squares of float32 overflow; a diverged tensor may be infinite in any type.
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.square(array.astype(np.float64)).sum(1))
        return norms.astype(np.float32), [f"norm over {array.shape[1]} inputs"]
    if array.ndim < 3:
        return array.reshape(1, *((1,) * (2 - array.ndim)), *array.shape), []
    return array.reshape(-1, *array.shape[-2:]), []


def _chosen(stack: Floats) -> list[int]:
    """All, or those with the largest norms, in their order."""
    if len(stack) <= MOST_MAPS:
        return list(range(len(stack)))
    # The norm of a map with one NaN would be NaN, which sorts last and would hide the map.
    finite = np.nan_to_num(stack, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float64)
    norms = np.square(finite).sum((1, 2))
    # Stable, so that of equal norms the first channels are chosen.
    return sorted(np.argsort(-norms, kind="stable")[:MOST_MAPS].tolist())


def _every(shape: tuple[int, ...]) -> int:
    n_maps, height, width = shape
    # The square root, as rows and columns are both thinned.
    by_size = math.ceil(math.sqrt(n_maps * height * width / MOST_NUMBERS))
    return max(1, by_size, math.ceil(max(height, width) / MOST_SIDE))


def _nth(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")
