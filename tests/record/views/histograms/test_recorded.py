"""Histograms as a record holds them, of parameters and of tags, against numpy's."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.views.histograms.common_range import on_common_range
from notebook_probe.record.views.histograms.recorded import histogram_names, recorded_histograms

N_STEPS = 4
GIVEN = [np.random.default_rng(step).normal(step, 1 + step, 300) for step in range(N_STEPS)]


class Telling(nn.Module):
    """Gives known values under a tag, at one step equal ones, at another none that is finite."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.step = nn.Linear(3, 1), 0

    def forward(self, x: Tensor) -> Tensor:
        nbp.summary.histogram("gate/<b>open</b>", torch.tensor(GIVEN[self.step]))
        nbp.summary.histogram("same", torch.full((20,), 2.0) if self.step else torch.tensor([]))
        self.step += 1
        return self.fc(x)


TAG = "gate_b_open_b_histogram"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> nbp.OpenedRun:
    folder: Path = tmp_path_factory.mktemp("histograms")
    torch.manual_seed(0)
    model = Telling()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    specified = {"collect_landscape": None, "collect_input_data": False}
    with nbp.watch(model, optimizer, store=folder / "run.zarr", probes=None) as run:
        one = nbp.SummaryCollector(str(folder), 1, collect_specified_data=specified)
        with one.attach(run):
            for _ in range(N_STEPS):
                optimizer.zero_grad()
                model(torch.ones(2, 3)).sum().backward()
                optimizer.step()
                run.log_array("other_histogram", np.ones(5))  # of the user's, no such thing
    return nbp.open_run(folder / "run.zarr")


def test_parameters_come_first_and_arrays_of_another_form_are_none(record: nbp.OpenedRun) -> None:
    assert histogram_names(record) == ["fc.weight", "fc.bias", TAG, "same_histogram"]


def test_a_tags_bins_are_numpys_between_the_extremes_of_its_values(record: nbp.OpenedRun) -> None:
    found = recorded_histograms(record, TAG)
    assert found.steps == [*range(N_STEPS)]
    np.testing.assert_allclose(found.lowest, [one.min() for one in GIVEN], rtol=1e-6)
    np.testing.assert_allclose(found.highest, [one.max() for one in GIVEN], rtol=1e-6)
    for counts, values in zip(found.counts, GIVEN, strict=True):
        expected, _ = np.histogram(values, bins=300 // 10 + 1)
        np.testing.assert_array_equal(counts[np.isfinite(counts)], expected)


def test_on_one_range_each_step_of_a_tag_keeps_its_elements(record: nbp.OpenedRun) -> None:
    own = recorded_histograms(record, TAG)
    found = on_common_range(own.counts, own.lowest, own.highest)
    ends = min(one.min() for one in GIVEN), max(one.max() for one in GIVEN)
    np.testing.assert_allclose(found.edges[[0, -1]], ends, rtol=1e-6)
    np.testing.assert_allclose(found.counts.sum(axis=1), 300)


def test_equal_values_have_half_a_unit_to_either_side_and_none_have_nothing(
    record: nbp.OpenedRun,
) -> None:
    own = recorded_histograms(record, "same_histogram")
    np.testing.assert_allclose(own.lowest[1:], 1.5)
    np.testing.assert_allclose(own.highest[1:], 2.5)
    found = on_common_range(own.counts, own.lowest, own.highest)
    assert np.isnan(found.counts[0]).all()
    np.testing.assert_allclose(found.counts[1:].sum(axis=1), 20)


def test_of_several_steps_those_that_are_chosen_are_read(record: nbp.OpenedRun) -> None:
    for name in ("fc.weight", TAG):
        every, few = (recorded_histograms(record, name, at) for at in (range, lambda n: [0, n - 1]))
        assert few.steps == [0, N_STEPS - 1]
        np.testing.assert_array_equal(few.counts, every.counts[[0, -1]])


def test_a_name_without_histograms_is_said(record: nbp.OpenedRun) -> None:
    with pytest.raises(UnknownNameError):
        recorded_histograms(record, "fc.wieght")
