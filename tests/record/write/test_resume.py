"""Going on with a record: after its end, at an earlier step, on a branch; or with another model."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from notebook_probe.errors import RecordFormatError, RecordMismatchError, UnknownNameError
from notebook_probe.record import ModuleRow, OpenedRecord, RecordWriter, open_record
from notebook_probe.record.format.resume import Resume, read_resume
from tests.record.build import BINS, COUNTS, GRAD, MODULES, WEIGHT, fill, new_writer, row, vectors


def recorded(folder: Path, steps: range, resume: Any = None) -> None:
    """Two schedules and vectors; the values tell their step."""
    with new_writer(folder, resume=resume) as writer:
        dense, sparse = writer.stream("every_1"), writer.stream("every_10")
        bins = writer.stream("every_1", axis=BINS)
        dense.extend(["conv1", "fc"], [GRAD])
        sparse.extend(["conv1"], [WEIGHT])
        bins.extend(["fc"], [COUNTS])
        fill(dense, steps)
        for step in steps:
            bins.record(step, step, vectors(bins, step))
            if step % 10 == 0:
                sparse.record(step, step, row(sparse, step))


def steps_of(folder: Path, group: str = "scalars/every_1") -> list[int]:
    """As plain xarray reads them, the values checked as well."""
    data = xr.open_zarr(folder, group=group, chunks=None).load()
    if "grad_norm" in data:
        expected = data.step.values[:, None] + 100.0 * np.arange(data.sizes["module"])
        np.testing.assert_array_equal(data.grad_norm.values, expected)
    return data.step.values.tolist()


def chunks_of(folder: Path) -> set[Path]:
    """The files with values of streams."""
    every = (path for group in ("scalars", "hist") for path in (folder / group).rglob("c/**/*"))
    return {path.relative_to(folder) for path in every if path.is_file()}


# ---------------------------------------------------------------- what can be asked for


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, Resume()),
        (True, Resume(exists=True)),
        (False, Resume(exists=False)),
        (0, Resume(0)),
        (7, Resume(7)),
        ("branch", Resume(branches=True, exists=True)),
        (" branch( 7 ) ", Resume(7, branches=True, exists=True)),
    ],
)
def test_a_resumption_is_read_from_how_it_is_written(given: Any, read: Resume) -> None:
    assert read_resume(given) == read


@pytest.mark.parametrize("given", [-1, 1.0, "", "branch(-1)", "branch(x)", "truncate", (3,)])
def test_any_other_resumption_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"resume=.*; allowed: None, True, False, a step"):
        read_resume(given)


def test_resuming_needs_a_record_only_where_it_makes_no_sense_without(tmp_path: Path) -> None:
    for resume in (True, "branch", "branch(3)"):
        with pytest.raises(RecordFormatError, match=r"no record to resume at .*a\.zarr"):
            new_writer(tmp_path / "a.zarr", resume=resume)
    with new_writer(tmp_path / "a.zarr", resume=1000) as writer:
        assert (writer.continued, writer.first_step) == (False, 1000)
    with pytest.raises(
        RecordMismatchError, match=r"resume=False: .*a\.zarr holds a record already"
    ):
        new_writer(tmp_path / "a.zarr", resume=False)
    new_writer(tmp_path / "b.zarr", resume=False).close()


# ---------------------------------------------------------------- at an earlier step


def test_resuming_at_a_step_removes_it_and_what_came_later(tmp_path: Path) -> None:
    recorded(tmp_path, range(100))
    recorded(tmp_path, range(35, 60), resume=35)
    assert steps_of(tmp_path) == [*range(60)]
    assert steps_of(tmp_path, "scalars/every_10") == [0, 10, 20, 30, 40, 50]
    record = open_record(tmp_path)
    counts = record.vectors["hist/every_1"].values("counts")[:, 0]
    np.testing.assert_allclose(counts[:, 0], np.arange(60))
    (event,) = record.events
    assert (event.step, event.kind) == (35, "truncate")
    assert event.text == (
        "rows of step 35 and later were removed: 65 of scalars/every_1, "
        "6 of scalars/every_10, 65 of hist/every_1"
    )


@pytest.mark.slow
def test_the_rows_that_were_cut_leave_no_trace_on_the_disk(tmp_path: Path) -> None:
    recorded(tmp_path / "cut", range(9_000))
    recorded(tmp_path / "cut", range(5, 6), resume=5)
    recorded(tmp_path / "never", range(6))
    assert chunks_of(tmp_path / "cut") == chunks_of(tmp_path / "never")
    raw = open_record(tmp_path / "cut").series("conv1", "grad_norm")
    assert raw.values.tolist() == [*range(6)]


@pytest.mark.parametrize(("step", "first"), [(0, []), (99, [*range(99)]), (500, [*range(100)])])
def test_any_step_can_be_gone_on_at(tmp_path: Path, step: int, first: list[int]) -> None:
    recorded(tmp_path, range(100))
    with new_writer(tmp_path, resume=step) as writer:
        assert writer.first_step == step
        assert [*writer.source.data.step.values] == first
    recorded(tmp_path, range(step, step + 3), resume=step)
    assert steps_of(tmp_path) == [*first, *range(step, step + 3)]


@pytest.mark.slow
def test_readers_see_what_stays_at_every_moment_of_a_cut(tmp_path: Path) -> None:
    """Fresh readers see rows below the cut; one that opened before sees them, or nothing above."""
    recorded(tmp_path, range(2000))
    before = xr.open_dataset(tmp_path, engine="zarr", group="scalars/every_1", cache=False)
    wrong: list[str] = []
    n_reads, done = 0, threading.Event()

    def read() -> None:
        nonlocal n_reads
        while not done.is_set():
            try:
                data = xr.open_dataset(
                    tmp_path, engine="zarr", group="scalars/every_1", cache=False
                ).load()
                steps, values = data.step.values, data.grad_norm.values[:, 0]
                gone = np.isnan(values) | (steps == -1)  # cut while it was being read
                right = (values == steps) | gone
                if not right.all() or gone[:501].any() or len(steps) < 501:
                    rows = np.flatnonzero(~right | gone)
                    wrong.append(f"{len(steps)} rows; {rows}: {steps[rows]}, {values[rows]}")
            except Exception as error:
                wrong.append(repr(error))
            n_reads += 1

    reader = threading.Thread(target=read)
    reader.start()
    for cut in (1500, 1111, 1000, 777, 501):
        recorded(tmp_path, range(cut, cut + 20), resume=cut)
        seen = n_reads
        while n_reads < seen + 2 and reader.is_alive():
            done.wait(0.001)
    done.set()
    reader.join(60)
    assert wrong == []
    old = before.grad_norm.values[:, 0]
    np.testing.assert_array_equal(old[:501], np.arange(501))
    assert np.isnan(old[521:]).all()


@pytest.mark.slow
def test_a_cut_that_was_killed_half_way_is_finished_by_the_next_writer(tmp_path: Path) -> None:
    """The shorter shapes are published, and the chunks of the rows cut off are still there."""
    recorded(tmp_path / "a", range(9_000))
    chunk = tmp_path / "a/hist/every_1/counts/c/1/0/0"
    kept = chunk.read_bytes()
    recorded(tmp_path / "a", range(5, 6), resume=5)
    assert not chunk.exists()
    chunk.parent.mkdir(parents=True, exist_ok=True)
    chunk.write_bytes(kept)
    recorded(tmp_path / "a", range(6, 7))
    assert not chunk.exists()
    assert steps_of(tmp_path / "a") == [*range(7)]


def test_the_next_step_is_that_of_the_state_that_was_evaluated_last(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        training, evaluation = writer.stream("every_1"), writer.stream("eval_every_1")
        for stream in (training, evaluation):
            stream.extend(["fc"], [WEIGHT])
        fill(training, range(3))
        fill(evaluation, range(3, 4))
    with new_writer(tmp_path) as writer:
        assert (writer.first_step, writer.last_evaluated) == (3, 3)
    with new_writer(tmp_path, resume=3) as writer:  # of what it goes on from
        assert (writer.first_step, writer.last_evaluated) == (3, 3)
    with new_writer(tmp_path, resume=2) as writer:
        assert (writer.first_step, writer.last_evaluated) == (2, -1)


# ---------------------------------------------------------------- branches


@pytest.mark.slow
def test_a_branch_keeps_what_was_there_and_is_seen_where_it_begins(tmp_path: Path) -> None:
    recorded(tmp_path, range(100))
    recorded(tmp_path, range(35, 60), resume="branch(35)")
    assert steps_of(tmp_path) == [*range(100)]
    assert steps_of(tmp_path, "scalars/every_1.r2") == [*range(35, 60)]
    assert steps_of(tmp_path, "scalars/every_10.r2") == [40, 50]
    record, old = open_record(tmp_path), OpenedRecord(tmp_path, branch=1)
    assert record.data.step.values.tolist() == [*range(60)]
    assert old.data.step.values.tolist() == [*range(100)]
    assert set(record.streams) == set(old.streams) == {"every_1", "every_10"}
    assert set(record.vectors) == {"hist/every_1"}
    assert record.vectors["hist/every_1"].values("counts", 30, 40)[:, 0, 0].tolist() == [
        *range(30, 40)
    ]
    assert {*record.to_xarray("tree").children} == {
        "every_1",
        "every_1.r2",
        "every_10",
        "every_10.r2",
        "hist",
    }
    assert record.attrs["branches"] == [0, 35]
    (event,) = record.events
    assert (event.step, event.kind) == (35, "branch")
    with pytest.raises(UnknownNameError, match="no branch 3 in the record; there are 1 to 2"):
        OpenedRecord(tmp_path, branch=3)


@pytest.mark.slow
def test_the_newest_branch_is_gone_on_with_and_may_be_cut(tmp_path: Path) -> None:
    recorded(tmp_path, range(100))
    recorded(tmp_path, range(50, 60), resume="branch(50)")
    recorded(tmp_path, range(60, 70))  # no word: the newest branch
    assert open_record(tmp_path).data.step.values.tolist() == [*range(70)]
    recorded(tmp_path, range(20, 25), resume=20)  # before the branch began: of it all is removed
    assert open_record(tmp_path).attrs["branches"] == [0, 20]
    assert open_record(tmp_path).data.step.values.tolist() == [*range(25)]
    assert steps_of(tmp_path, "scalars/every_1.r2") == [*range(20, 25)]
    assert OpenedRecord(tmp_path, branch=1).data.step.values.tolist() == [*range(100)]


@pytest.mark.slow
def test_a_branch_of_a_branch_has_the_history_of_both(tmp_path: Path) -> None:
    recorded(tmp_path, range(100))
    recorded(tmp_path, range(50, 80), resume="branch(50)")
    recorded(tmp_path, range(70, 75), resume="branch(70)")
    recorded(tmp_path, range(10, 12), resume="branch(10)")
    ends = {1: 100, 2: 80, 3: 75, 4: 12}
    for branch, end in ends.items():
        seen = OpenedRecord(tmp_path, branch=branch)
        assert seen.data.step.values.tolist() == [*range(end)]
        assert seen.series("conv1", "grad_norm").values.tolist() == [*range(end)]


def test_a_branch_may_measure_other_things(tmp_path: Path) -> None:
    recorded(tmp_path, range(10))
    with new_writer(tmp_path, resume="branch(5)") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv2", "fc"], [WEIGHT, GRAD])
        fill(stream, range(5, 8))
        live, now = writer.source.streams["every_1"], writer.source.data
        assert live.steps().tolist() == [*range(8)]
        assert live.modules == ("conv1", "fc", "conv2")
        assert live.values("grad_norm", 4, 6, ["fc", "conv2"]).tolist()[1] == [1105, 1005]
        assert now.weight_norm.sel(module="conv2").values[5:].tolist() == [5, 6, 7]
        assert np.isnan(now.weight_norm.sel(module="conv2").values[:5]).all()
        assert now.grad_norm.sel(module="fc").values[:5].tolist() == [100, 101, 102, 103, 104]


def test_a_branch_after_the_last_step_only_begins_another_group(tmp_path: Path) -> None:
    recorded(tmp_path, range(10))
    recorded(tmp_path, range(10, 12), resume="branch")
    assert open_record(tmp_path).data.step.values.tolist() == [*range(12)]
    assert steps_of(tmp_path) == [*range(10)]


@pytest.mark.parametrize("branches", [[], "x", [0, "1"], 3, [True]])
def test_branches_that_make_no_sense_are_one_clear_error(tmp_path: Path, branches: Any) -> None:
    recorded(tmp_path, range(3))
    root = json.loads((tmp_path / "zarr.json").read_text())
    root["attributes"]["branches"] = branches
    (tmp_path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(RecordFormatError, match="of the record; first steps are expected"):
        open_record(tmp_path)


# ---------------------------------------------------------------- another model


def refusal(folder: Path, modules: tuple[ModuleRow, ...]) -> str:
    with pytest.raises(RecordMismatchError) as refused:
        RecordWriter(folder, title="run", modules=modules)
    return str(refused.value).removeprefix(f"{folder} holds the record of another model; ")


def test_another_models_record_is_refused_with_every_kind_of_difference(tmp_path: Path) -> None:
    new_writer(tmp_path).close()
    before = open_record(tmp_path).attrs
    wider = (*MODULES[:3], ModuleRow("fc", "Linear", 6, 6, 0))
    renamed = (*MODULES[:3], ModuleRow("head", "Linear", 5, 5, 0))
    deeper = (*MODULES, ModuleRow("fc2", "Linear", 1, 1, 0), ModuleRow("act", "ReLU", 0, 0, 0))
    end = ". Nothing was changed: give another folder, or overwrite=True"
    assert refusal(tmp_path, wider) == (
        f"other modules: fc (Linear, 5 parameters there, Linear, 6 parameters given){end}"
    )
    assert refusal(tmp_path, renamed) == f"renamed: fc is given as head{end}"
    assert refusal(tmp_path, MODULES[:3]) == f"not given: fc (Linear, 5 parameters){end}"
    assert refusal(tmp_path, deeper) == f"not there: fc2 (Linear, 1 parameters), act (ReLU){end}"
    assert open_record(tmp_path).attrs == before
    new_writer(tmp_path).close()  # the lock was given back


def test_many_differences_are_counted(tmp_path: Path) -> None:
    RecordWriter(tmp_path, title="run", modules=MODULES).close()
    many = (*MODULES, *(ModuleRow(f"layer{i}", "Linear", 1, 1, 0) for i in range(10)))
    assert "layer3 (Linear, 1 parameters) and 6 more" in refusal(tmp_path, many)


def test_a_model_that_changed_while_it_was_recorded_is_still_the_same(tmp_path: Path) -> None:
    grown = (*MODULES[:2], ModuleRow("adapter", "Linear", 2, 2, 0), *MODULES[2:])
    shrunk = (*MODULES[:1], *MODULES[2:])
    with new_writer(tmp_path) as writer:
        writer.follow_model(grown)
        writer.follow_model(shrunk)
        assert [one.name for one in writer.source.modules[-2:]] == ["fc", "adapter"]
    for modules in (MODULES, grown, shrunk):
        with RecordWriter(tmp_path, title="run", modules=modules) as writer:
            assert len(writer.source.modules) == len(MODULES) + 1
    assert open_record(tmp_path).attrs["changed_modules"] == ["adapter", "conv1"]
    assert "not there: other" in refusal(tmp_path, (*grown, ModuleRow("other", "Net", 0, 0, 0)))
