"""A layered layout of a graph without cycles: a node is above those that take from it.

Layers by longest path; order within one by barycentres; places by isotonic regression, as straight
as the widths of the boxes allow (Sugiyama's method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["GraphLayout", "layered"]

SWEEPS = 12
EDGE_WIDTH = 0.12
"""Room for a link that passes a layer, in the units of the widths."""

PASSING = 1e-3
"""Weight of a link that skips layers, compared with one to the next layer."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Positions of all boxes and links.

    Attributes
    ----------
    x : tuple of float
        The middle of each box.
    layer : tuple of int
        Layer, from 0 at the top.
    routes : dict of (int, int) to list of (float, int)
        Points (x, layer) of each link, both ends included.
    """

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: dict[Pair, list[tuple[float, int]]]


def layered(widths: Sequence[float], links: Sequence[Pair], gap: float = 0.3) -> GraphLayout:
    """Lay boxes out.

    Parameters
    ----------
    widths : sequence of float
        Width of each box.
    links : sequence of (int, int)
        The first box is the smaller.
    gap : float
        Between two boxes of one layer.

    Examples
    --------
    >>> layout = layered([1.0, 1.0, 1.0], [(0, 1), (0, 2)])
    >>> layout.layer, layout.x[0] == (layout.x[1] + layout.x[2]) / 2
    ((0, 1, 1), True)
    """
    layer, sizes = _layers(len(widths), links), [*widths]
    chains: dict[Pair, list[int]] = {}
    for start, end in links:  # a link that passes layers has a separate slot in each
        between = range(layer[start] + 1, layer[end])
        chains[start, end] = [start, *range(len(sizes), len(sizes) + len(between)), end]
        sizes += [EDGE_WIDTH] * len(between)
        layer += between
    pairs = [pair for chain in chains.values() for pair in pairwise(chain)]
    above, below = _neighbours(len(sizes), pairs)
    rows = _ordered(layer, above, below)
    x = _straightened(rows, sizes, len(widths), above, below, gap)
    routes = {link: [(x[one], layer[one]) for one in chain] for link, chain in chains.items()}
    n = len(widths)
    return GraphLayout(tuple(x[:n]), tuple(layer[:n]), routes)


def _layers(n: int, links: Sequence[Pair]) -> list[int]:
    """Return the longest path to each node; sources are just above their first taker."""
    layer, takes = [0] * n, [False] * n
    for start, end in sorted(links, key=lambda link: link[1]):
        layer[end] = max(layer[end], layer[start] + 1)
        takes[end] = True
    for one in range(n):
        takers = [layer[end] for start, end in links if start == one]
        if takers and not takes[one]:
            layer[one] = min(takers) - 1
    return layer


def _neighbours(n: int, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for start, end in pairs:
        above[end].append(start)
        below[start].append(end)
    return above, below


def _ordered(
    layer: Sequence[int], above: Sequence[list[int]], below: Sequence[list[int]]
) -> list[list[int]]:
    """Return the boxes of each layer from left to right, ordered to cross few links."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for one, number in enumerate(layer):
        rows[number].append(one)
    place = {one: float(i) for row in rows for i, one in enumerate(row)}

    def barycentre(one: int, others: Sequence[int]) -> float:
        return sum(place[other] for other in others) / len(others) if others else place[one]

    for sweep in range(SWEEPS):
        neighbours, ordered = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in ordered:
            row.sort(key=lambda one: barycentre(one, neighbours[one]))
            place |= {one: float(i) for i, one in enumerate(row)}
    return rows


def _straightened(
    rows: Sequence[list[int]],
    sizes: Sequence[float],
    n_boxes: int,
    above: Sequence[list[int]],
    below: Sequence[list[int]],
    gap: float,
) -> list[float]:
    """Return the middle of each box: as near to its neighbors' as the adjacent boxes allow."""
    x = [0.0] * len(sizes)
    pull = [1.0 if one < n_boxes else PASSING for one in range(len(sizes))]

    def wanted(one: int, others: Sequence[int]) -> float:
        """Return the wanted position: consecutive boxes are straight below each other."""
        pulled = sum(pull[other] * x[other] for other in others)
        return pulled / sum(pull[other] for other in others) if others else x[one]

    for sweep in range(SWEEPS):
        neighbours, ordered = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in ordered:
            middles = [wanted(one, neighbours[one]) for one in row]
            placed = _without_overlap(
                [sizes[one] for one in row], [pull[one] for one in row], middles, gap
            )
            for one, middle in zip(row, placed, strict=True):
                x[one] = middle
    return x


def _without_overlap(
    widths: Sequence[float], weights: Sequence[float], wanted: Sequence[float], gap: float
) -> list[float]:
    """Return the positions nearest to the wanted ones (weighted squares) without overlap."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    blocks: list[tuple[float, float, int]] = []  # mean, weight and number of those that touch
    for middle, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, n = middle - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, m = blocks.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, n = heavy + weight, m + n
        blocks.append((mean, weight, n))
    means = [mean for mean, _, n in blocks for _ in range(n)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
