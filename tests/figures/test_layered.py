"""A layered layout: links go down, nothing overlaps, and what is alone lies straight."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.figures.graphs.layered import layered


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    widths = draw(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=12))
    pairs = [(start, end) for end in range(len(widths)) for start in range(end)]
    links = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    return widths, links


@pytest.mark.slow
@settings(max_examples=80)
@given(graphs())
def test_links_go_down_and_boxes_lie_beside_each_other(
    case: tuple[list[float], list[tuple[int, int]]],
) -> None:
    widths, links = case
    layout = layered(widths, links, gap=0.3)
    assert {*layout.routes} == {*links}
    for (start, end), route in layout.routes.items():
        assert route[0] == (layout.x[start], layout.layer[start])
        assert route[-1] == (layout.x[end], layout.layer[end])
        assert [layer for _, layer in route] == [*range(layout.layer[start], layout.layer[end] + 1)]
    for layer in {*layout.layer}:
        row = sorted((layout.x[i], widths[i]) for i, own in enumerate(layout.layer) if own == layer)
        for (x, width), (next_x, next_width) in pairwise(row):
            assert next_x - x >= (width + next_width) / 2 + 0.3 - 1e-9


def test_a_layer_is_the_longest_way_to_it() -> None:
    layout = layered([1.0] * 5, [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)])
    assert layout.layer == (0, 1, 2, 1, 3)


def test_a_chain_is_straight_whatever_passes_it_by() -> None:
    chain = [(place, place + 1) for place in range(6)]
    layout = layered([1.0, 2.0, 1.5, 1.0, 3.0, 1.0, 1.0], [*chain, (0, 6), (1, 5), (2, 4)])
    assert max(layout.x) - min(layout.x) < 0.05


def test_nothing_is_laid_out_as_nothing() -> None:
    assert layered([], []).x == ()
