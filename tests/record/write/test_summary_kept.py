"""What a writer says of a run as a whole is what its rows say."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.record import OpenedRecord, RecordWriter, Variable
from notebook_probe.record.format.missing import NOT_MEASURED, as_measured
from notebook_probe.record.format.schema import LOGGED_BY, LOGGED_OF_STATES
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.format.summary import MOST_SCALARS, SUMMARY, Scalar, Summary
from notebook_probe.record.read.summarised import current_summary, summarised

TIME_MS = 1_700_000_000_000
values = st.floats(width=32) | st.just(None)


def writer_of(folder: Path, **more: Any) -> RecordWriter:
    return RecordWriter(folder, title="r", modules=[], **more)


def log(writer: RecordWriter, step: int, **numbers: float | None) -> None:
    stream = writer.stream("every_1")
    stream.extend([ROOT], [Variable(name, "1", LOGGED_BY) for name in numbers])
    row = np.full(stream.shape, NOT_MEASURED, np.float32)
    for name, value in numbers.items():
        if value is not None:
            row[stream.variable_index[name], 0] = as_measured([value])[0]
    stream.record(step, TIME_MS + step, row)


def published(folder: Path) -> Summary:
    found = Summary.read(OpenedRecord(folder).attrs)
    assert found is not None
    return found


def without_size(summary: Summary) -> Summary:
    return replace(summary, size_bytes=0)


def same(one: Summary, other: Summary) -> bool:
    """In whichever order names came; NaN is NaN."""
    first, second = (json.loads(without_size(each).text()) for each in (one, other))
    return bool(first == second)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    rows=st.lists(st.tuples(values, values, st.booleans()), max_size=12),
    resume=st.sampled_from([True, 3, "branch", "branch(2)"]),
)
def test_at_every_commit_it_tells_what_the_rows_tell(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[float | None, float | None, bool]],
    resume: Any,
) -> None:
    folder = tmp_path_factory.mktemp("r")
    for go_on in (None, resume):
        with writer_of(folder, resume=go_on) as writer:
            for step, (loss, lr, flush) in enumerate(rows, writer.first_step):
                log(writer, step, loss=loss, lr=lr)
                if flush:
                    writer.event(step, "alert", "!", json.dumps({"rule": "dead"}))
                    assert writer.flush()
                    assert same(published(folder), summarised(OpenedRecord(folder)))
        assert same(published(folder), summarised(OpenedRecord(folder)))


def test_a_number_is_told_as_it_was_logged(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        for step, loss in enumerate([0.1, math.inf, 0.3, math.nan]):
            log(writer, step, loss=loss)
        writer.event(2, "checkpoint", "saved")
    found = published(tmp_path)
    assert repr(found.scalars["loss"]) == repr(Scalar(0, 0.1, 3, math.nan, 0.1, 0.3))
    assert (found.steps, found.updated_ms, found.n_checkpoints) == (4, TIME_MS + 3, 1)
    assert json.loads(OpenedRecord(tmp_path).attrs[SUMMARY])["scalars"]["loss"][3] == "nan"


def test_its_size_is_that_of_the_folder_but_for_the_last_root(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        for step in range(500):
            log(writer, step, loss=step)
    on_disk = sum(one.stat().st_size for one in tmp_path.rglob("*") if one.is_file())
    assert abs(published(tmp_path).size_bytes - on_disk) < 4096


def test_evaluations_are_of_states_and_of_many_names_the_first_are_told(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        evaluated = writer.stream(LOGGED_OF_STATES)
        evaluated.extend([ROOT], [Variable("accuracy", "1", LOGGED_BY)])
        evaluated.record(5, TIME_MS, np.full((1, 1), 0.5, np.float32))
        named = writer.named()
        named.extend([f"n{i}" for i in range(MOST_SCALARS + 10)])
        named.record(0, TIME_MS, np.ones(named.shape, np.float32))
    found = published(tmp_path)
    assert found.states == {"accuracy": Scalar(5, 0.5, 5, 0.5, 0.5, 0.5)}
    assert [*found.scalars] == [f"n{i}" for i in range(MOST_SCALARS)]
    assert found.steps == 5, "the state after five updates"


def test_one_that_is_of_other_rows_is_not_believed(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        log(writer, 0, loss=3.0)
    root = tmp_path / "zarr.json"
    text = json.loads(root.read_text())
    stale = Summary(n_rows=7, steps=99).text()
    for told in (stale, "no JSON", "[1]", '{"rows": "x"}', "NaN"):
        text["attributes"][SUMMARY] = told
        root.write_text(json.dumps(text))
        assert current_summary(OpenedRecord(tmp_path)).steps == 1


def test_an_idle_record_is_not_written_again_and_again(tmp_path: Path) -> None:
    with writer_of(tmp_path) as writer:
        log(writer, 0, loss=1.0)
        assert writer.flush()
        assert writer.flush(), "what seals may still change the root once"
        before = (tmp_path / "zarr.json").stat().st_mtime_ns
        assert writer.flush()
        assert (tmp_path / "zarr.json").stat().st_mtime_ns == before


def full(*_: object) -> None:
    raise OSError(28, "full")


def test_of_rows_that_could_not_be_published_it_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r.zarr"
    with writer_of(folder) as writer:
        log(writer, 0, loss=1.0)
    writer = writer_of(folder)
    log(writer, 1, loss=0.5)
    with monkeypatch.context() as patch:
        patch.setattr("notebook_probe.record.store.files.Files.write", full)
        patch.setattr("notebook_probe.record.write.closing.keep", lambda *_: None)
        with pytest.raises(Exception, match="full"):
            writer.close()
    assert published(folder).scalars["loss"].last == 1.0, "it tells of what is there"
