"""Disk use of each quantity in a record, from the paths of its files."""

from __future__ import annotations

from collections.abc import Mapping

from notebook_probe.record.format.reductions import METHODS
from notebook_probe.record.format.schema import BLOBS, PYRAMID

__all__ = ["bytes_by_quantity"]

CHUNKS = "/c/"
TABLES = ("events", "modules")


def bytes_by_quantity(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of each array's chunks, including its pyramid; the largest first.

    Parameters
    ----------
    sizes : mapping of str to int
        Bytes by path.

    Examples
    --------
    >>> bytes_by_quantity({"scalars/every_1/norm/c/0/0": 70, "scalars/every_1/step/c/0": 9,
    ...                    "pyramid/every_1/by64/norm_max/c/0/0": 20})
    {'norm': 90, 'step': 9}
    """
    found: dict[str, int] = {}
    for path, n_bytes in sizes.items():
        array = path.partition(CHUNKS)[0]
        if array != path and not array.startswith(TABLES):
            name = _quantity(array.split("/"))
            found[name] = found.get(name, 0) + n_bytes
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def _quantity(parts: list[str]) -> str:
    if parts[0] == BLOBS:
        return parts[1]
    if parts[0] == PYRAMID and parts[-1].rpartition("_")[2] in METHODS:
        return parts[-1].rpartition("_")[0]
    return parts[-1]
