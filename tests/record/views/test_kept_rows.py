"""Of rows on ``keep(n)`` those that are evenly spaced, against the definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from notebook_probe import Run, open_run, watch
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.views.kept_rows import kept_rows
from notebook_probe.schedules import Every, KeepN, Schedule
from tests.record.build import BINS, COUNTS, GRAD, LAW, WEIGHT, new_writer, row


def kept_by_definition(n: int, offset: int, last: int) -> list[int]:
    """Doubling the stride until fewer than n of them fit, as the last row is at ``last``."""
    stride = 1
    while (last - offset) // stride >= n:
        stride *= 2
    return [step for step in range(max(offset, 0), last + 1) if (step - offset) % stride == 0]


def recorded(place: Path, n_steps: int, *schedules: Schedule) -> RecordWriter:
    writer = new_writer(place)
    for one in schedules:
        stream = writer.stream(one.stream, str(one))
        stream.extend(["fc"], [GRAD])
        for step in filter(one, range(n_steps)):
            stream.record(step, 0, row(stream, step))
    return writer


@pytest.mark.slow
@settings(LAW, max_examples=20)
@given(n=st.integers(2, 12), offset=st.integers(-5, 20), n_steps=st.integers(1, 120))
def test_the_rows_of_a_keep_are_those_that_fit_its_last_stride(
    n: int, offset: int, n_steps: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = KeepN(n, offset)
    written = [step for step in range(n_steps) if one(step)]
    place = tmp_path_factory.mktemp("kept") / "record"
    with recorded(place, n_steps, one) as writer:
        column = writer.source.series("fc", "grad_norm", kept=True)
    expected = kept_by_definition(n, offset, written[-1]) if written else []
    assert column.step.values.tolist() == expected
    assert set(expected) <= set(written)
    assert column.values.tolist() == expected
    if n_steps - offset >= n and offset >= 0:
        assert n // 2 + 1 <= len(expected) <= n


def test_of_other_schedules_all_rows_are_kept_beside_them(tmp_path: Path) -> None:
    with recorded(tmp_path / "record", 100, KeepN(4), Every(30, 7)):
        pass
    record = open_record(tmp_path / "record")
    assert record.series("fc", "grad_norm", kept=True).step.values.tolist() == [
        *(0, 7, 32, 37, 64, 67, 96, 97)
    ]
    whole = record.series("fc", "grad_norm").step.values.tolist()
    assert whole == sorted({*filter(KeepN(4), range(100)), 7, 37, 67, 97})


def test_another_module_of_the_quantity_does_not_keep_more(tmp_path: Path) -> None:
    with recorded(tmp_path / "record", 100, KeepN(4)) as writer:
        stream = writer.stream("every_1", "every(1)")
        stream.extend(["conv1"], [GRAD, WEIGHT])
        for step in range(100):
            stream.record(step, 0, row(stream, step))
    record = open_record(tmp_path / "record")
    assert record.series("fc", "grad_norm", kept=True).step.values.tolist() == [0, 32, 64, 96]
    assert record.series("conv1", "grad_norm", kept=True).sizes["step"] == 100


def test_vectors_of_any_length_are_kept_as_numbers_are(tmp_path: Path) -> None:
    one = KeepN(4, 2)
    with new_writer(tmp_path / "record") as writer:
        vectors = writer.stream(one.stream, str(one), BINS)
        vectors.extend(["fc"], [COUNTS])
        ragged = writer.ragged(one.stream, str(one))
        ragged.extend([WEIGHT])
        for step in filter(one, range(40)):
            vectors.record(step, 0, np.full(vectors.shape, step, np.float32))
            ragged.record(step, 0, {("weight_norm", "fc"): np.full(3, step)})
    record = open_record(tmp_path / "record")
    for quantity in ("counts", "weight_norm"):
        column = record.series("fc", quantity, kept=True)
        assert column.step.values.tolist() == [2, 18, 34]
        assert (column.values == column.step.values[:, None]).all()


def trained(run: Run, model: nn.Module, n: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(n):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    run.controls.settle()


def test_a_live_run_an_opened_one_and_a_branch_keep_the_same(tmp_path: Path) -> None:
    place, model = tmp_path / "record", nn.Linear(2, 1)
    with watch(model, store=place, probes=None) as run:
        run.attach("", "weight_norm", "keep(8)")
        trained(run, model, 100)
        live = run.series("", "weight_norm", kept=True)
    opened = open_run(place).series("", "weight_norm", kept=True)
    assert live.step.values.tolist() == opened.step.values.tolist() == [*range(0, 100, 16)]
    assert live.values.tolist() == opened.values.tolist()
    with watch(model, store=place, probes=None, step=50, branch=True) as run:
        run.attach("", "weight_norm", "keep(8)")
        trained(run, model, 10)
        assert run.series("", "weight_norm", kept=True).step.values.tolist() == [*range(0, 57, 8)]


def test_what_is_evaluated_is_kept_too(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "output_norm", "keep(4)", phase="eval")
        for _ in range(40):
            trained(run, model, 1)
            with torch.no_grad():
                model.eval()(torch.ones(3, 2))
            model.train()
    steps = open_run(tmp_path / "record").series("", "eval_output_norm", kept=True).step
    assert steps.values.tolist() == [16, 32]  # state 0 was never evaluated


def test_ranks_of_a_job_keep_the_same_steps(tmp_path: Path) -> None:
    for rank in range(2):
        with recorded(tmp_path / "job" / f"rank_{rank:05}", 100, KeepN(4)):
            pass
    column = open_run(tmp_path / "job").series("fc", "grad_norm", kept=True)
    assert column.dims == ("rank", "step")
    assert column.step.values.tolist() == [0, 32, 64, 96]


def test_arrays_which_are_on_no_schedule_are_all_kept(tmp_path: Path) -> None:
    with new_writer(tmp_path / "record") as writer:
        arrays = writer.arrays(COUNTS, "fc", (2, 2))
        for step in range(5):
            arrays.record(step, 0, np.full((2, 2), step, np.float32))
    record = open_record(tmp_path / "record")
    assert record.series("fc", "counts", kept=True).sizes["step"] == 5
    assert kept_rows(record.series("fc", "counts"), []).sizes["step"] == 5
