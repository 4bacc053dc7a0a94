"""The columns of vectors of every module's own length: elements, module after module.

A column's label tells its module, its place in the vector and the length of the vector, so that a
module whose vectors come in two lengths has columns for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["element_labels", "labels_of", "read_element"]

_LABEL = re.compile(r"(.*)\[(\d+)/(\d+)\]", re.DOTALL)


def element_labels(module: str, size: int) -> list[str]:
    """Labels of a vector's elements.

    Examples
    --------
    >>> element_labels("conv1", 2)
    ['conv1[0/2]', 'conv1[1/2]']
    """
    return [f"{module}[{index}/{size}]" for index in range(size)]


def read_element(label: str) -> tuple[str, int, int]:
    """Return module, place and length from a label.

    Examples
    --------
    >>> read_element("blocks[0][3/64]")
    ('blocks[0]', 3, 64)
    """
    found = _LABEL.fullmatch(label)
    if found is None:
        raise ValueError(f"{label!r} is no element")
    return found[1], int(found[2]), int(found[3])


def labels_of(modules: Sequence[str], indices: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Return the labels, from the module and the place of each element.

    Examples
    --------
    >>> labels_of(["a", "a", "b"], np.array([0, 1, 0]))
    ('a[0/2]', 'a[1/2]', 'b[0/1]')
    """
    # Each module's elements start with index 0 and follow each other.
    starts = np.flatnonzero(indices == 0)
    sizes = np.diff(starts, append=len(indices))
    ranges: Iterable[tuple[int, int]] = zip(starts.tolist(), sizes.tolist(), strict=True)
    return tuple(label for start, size in ranges for label in element_labels(modules[start], size))
