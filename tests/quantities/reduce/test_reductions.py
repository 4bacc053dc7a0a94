"""Parts of summary features: an open set, each with the reduction that measures it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from notebook_probe.errors import DuplicateNameError, UnknownNameError
from notebook_probe.quantities.catalogue.histograms import histogram
from notebook_probe.quantities.reduce.reductions import (
    Measure,
    Reduction,
    measuring,
    parts,
    reduction,
)

NOTHING: frozenset[str] = frozenset()


class Largest(float):
    def merge(self, other: Largest) -> Largest:
        return Largest(max(self, other))


def test_one_reduction_may_measure_several_parts() -> None:
    @reduction("test_largest", "test_greatest", first_only=True)
    def largest(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Largest:
        return Largest(tensor.max())

    found = measuring("test_largest")
    assert found is parts["test_greatest"]
    assert found == Reduction(("test_largest", "test_greatest"), largest, first_only=True)
    one, other = (found.measure(torch.tensor(t), None, NOTHING) for t in ([1.0, 3.0], [2.0]))
    assert one.merge(other) == 3.0
    assert len({found: 1, parts["test_greatest"]: 2}) == 1


def test_a_cell_run_twice_replaces_its_part_and_another_of_that_name_raises() -> None:
    def define() -> Measure:
        @reduction("test_again")
        def again(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Largest:
            return Largest(tensor.max())

        return again

    first, second = define(), define()
    assert measuring("test_again").measure is second is not first
    with pytest.raises(DuplicateNameError, match="reduction 'histogram' is already registered"):
        reduction("histogram")(first)
    assert measuring("histogram").measure is histogram


def test_an_unknown_part_lists_the_close_ones() -> None:
    with pytest.raises(UnknownNameError, match="no reduction 'histogramm'; close: 'histogram'"):
        parts["histogramm"]
