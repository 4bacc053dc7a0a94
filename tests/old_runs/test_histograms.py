"""Histograms of other tools are arrays of left edges, right edges and counts."""

import json
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.old_runs.allowance import Allowance
from notebook_probe.old_runs.formats.wandb import _histogram
from notebook_probe.old_runs.histograms import HistogramPoints
from tests.old_runs.files_of_tools import TENSORBOARD


def test_they_are_read_as_arrays_of_a_record() -> None:
    run = nbp.open_run(TENSORBOARD)
    found = run.series("fc.bias", "logged_histogram")
    assert found.dims == ("step", "dim_0", "dim_1")
    assert found.step.values.tolist() == [3, 7, 11]
    np.testing.assert_array_equal(found.values[0, 2], [3, 2, 2, 3])
    np.testing.assert_array_equal(found.values[0, 1] - found.values[0, 0], 27 / 4)


def test_bins_of_different_numbers_get_empty_ones_without_width() -> None:
    histograms = HistogramPoints(Allowance())
    histograms.add("fc.weight", 5, 0, ([0.0, 1.0], [1.0, 2.0]), [3, 4])
    histograms.add("fc.weight", 2, 0, ([0.0], [9.0]), [7])
    histograms.add("fc.weight", 5, 0, ([0.0, 1.0], [1.0, 4.0]), [5, 6])
    (found,) = histograms.series()
    assert found.steps.tolist() == [2, 5]
    assert found.bins.tolist() == [
        [[0.0, 9.0], [9.0, 9.0], [7.0, 0.0]],
        [[0.0, 1.0], [1.0, 4.0], [5.0, 6.0]],
    ]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("gradients/fc.weight", ("fc.weight", "logged_gradient_histogram")),
        ("fc.weight", ("fc.weight", "logged_histogram")),
        ("fc.weight.grad", ("fc.weight", "logged_gradient_histogram")),
        ("train/outputs", ("", "logged_train_outputs_histogram")),
        ("é", ("", "logged_unnamed_histogram")),
    ],
)
def test_a_name_says_which_module_they_are_of(name: str, place: tuple[str, str]) -> None:
    histograms = HistogramPoints(Allowance())
    histograms.add(name, 0, 0, ([0.0], [1.0]), [1])
    (found,) = histograms.series()
    assert (found.module, found.quantity) == place


@pytest.mark.parametrize(
    ("edges", "counts", "step"),
    [(([], []), [], 0), (([0.0], [1.0]), [1, 2], 0), (([0.0], [1.0]), [1], -1)],
)
def test_damaged_ones_are_counted(edges: Any, counts: list[float], step: int) -> None:
    histograms = HistogramPoints(Allowance())
    histograms.add("fc", step, 0, edges, counts)
    assert (histograms.series(), histograms.n_odd) == ((), 1)


def test_packed_bins_of_wandb_are_equally_wide() -> None:
    packed = {"min": -1, "size": 0.5, "count": 4}
    assert _histogram({"packedBins": packed, "values": [1, 2, 3, 4]}) == (
        [-1.0, -0.5, 0.0, 0.5, 1.0],
        [1.0, 2.0, 3.0, 4.0],
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"values": [1], "bins": "no"}',
        '{"values": [1, "x"], "bins": [0, 1, 2]}',
        '{"values": 3, "packedBins": {"min": 0, "size": 1, "count": 1e300}}',
    ],
)
def test_damaged_ones_of_wandb_have_no_bins(text: str) -> None:
    assert _histogram(json.loads(text)) == ((), ())
