"""What was evaluated of the state at which a training goes on belongs to what it goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import EVALUATION, LOGGED_OF_STATES, PHASE
from tests.record.build import GRAD, fill, new_writer

NORM = Variable("eval_norm")
IMAGE = Variable("eval_image", attrs={PHASE: "evaluation"})


def evaluate(writer: RecordWriter, states: Sequence[int], offset: float = 0.0) -> None:
    """Numbers, scalars by name and arrays of states; each tells its state."""
    numbers, named = writer.stream(f"{EVALUATION}every_5"), writer.named(LOGGED_OF_STATES)
    images = writer.arrays(IMAGE, "fc", (2,))
    numbers.extend(["fc"], [NORM])
    named.extend(["val/loss"])
    for state in states:
        numbers.record(state, state, np.array([[state + offset]], np.float32))
        named.record(state, state, np.array([[state + offset]], np.float32))
        images.record(state, state, np.full((2,), state + offset, np.float32))


def recorded(folder: Path, resume: Any = None, steps: range = range(20)) -> None:
    """Steps, and evaluations of the states before every fifth and after the last."""
    with new_writer(folder, resume=resume) as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        fill(stream, steps)
        evaluate(writer, [*range(steps.start, steps.stop + 1, 5)])


def states_of(record: Any) -> list[dict[int, float]]:
    """Of each kind what was evaluated, by state."""
    image = record.series("fc", "eval_image")[:, 0]
    every = (record.series("fc", "eval_norm"), record.series("", "val/loss"), image)
    return [dict(zip(one.step.values.tolist(), one.values.tolist(), strict=True)) for one in every]


def same(states: Sequence[int]) -> list[dict[int, float]]:
    return [{state: float(state) for state in states}] * 3


def test_going_on_at_a_step_keeps_the_evaluation_of_the_state_before_it(tmp_path: Path) -> None:
    recorded(tmp_path)
    new_writer(tmp_path, resume=10).close()
    record = open_record(tmp_path)
    assert states_of(record) == same([0, 5, 10])
    assert record.series("fc", "grad_norm").step.values.tolist() == [*range(10)]
    (event,) = record.events
    assert event.text == (
        "rows of step 10 and later were removed: 2 of scalars/eval_every_5, "
        "10 of scalars/every_1, 2 of names/eval_logged, 2 of blobs/eval_image/fc"
    )


def test_a_record_goes_on_by_itself_at_the_state_that_was_evaluated_last(tmp_path: Path) -> None:
    recorded(tmp_path)
    with new_writer(tmp_path) as writer:
        assert writer.first_step == 20
    assert states_of(open_record(tmp_path)) == same([0, 5, 10, 15, 20])


@pytest.mark.slow
def test_a_branch_shows_the_evaluation_of_the_state_that_it_begins_with(tmp_path: Path) -> None:
    recorded(tmp_path)
    with new_writer(tmp_path, resume="branch(10)") as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        fill(stream, range(10, 13))
        assert states_of(writer.source) == same([0, 5, 10])
        evaluate(writer, [13], offset=0.5)
    expected = [{0: 0.0, 5: 5.0, 10: 10.0, 13: 13.5}] * 3
    assert states_of(open_record(tmp_path)) == expected
    assert open_record(tmp_path).series("fc", "grad_norm").step.values.tolist() == [*range(13)]
    assert states_of(OpenedRecord(tmp_path, branch=1)) == same([0, 5, 10, 15, 20])


@pytest.mark.slow
def test_what_the_branch_evaluates_again_is_above_and_the_rest_shows_through(
    tmp_path: Path,
) -> None:
    recorded(tmp_path)
    with new_writer(tmp_path, resume="branch(10)") as writer:
        stream = writer.stream(f"{EVALUATION}every_5")
        stream.extend(["conv1", "fc"], [NORM, Variable("eval_rank")])
        view = writer.source.streams["eval_every_5"]
        before = view.n_rows, view.version
        stream.record(10, 0, as_measured(np.array([[1, np.nan], [2, 3]])))
        view = writer.source.streams["eval_every_5"]
        assert view.n_rows == before[0] == 3
        assert view.version != before[1]
        stream.record(12, 0, np.array([[4, 5], [6, 7]], np.float32))
        for source in (writer.source, None):
            if source is None:
                writer.close()
            norms = (source or open_record(tmp_path)).series("fc", "eval_norm")
            assert norms.step.values.tolist() == [0, 5, 10, 12]
            np.testing.assert_array_equal(norms.values, [0, 5, np.nan, 5])
            other = (source or open_record(tmp_path)).series("conv1", "eval_norm")
            assert dict(zip(other.step.values.tolist(), other.values.tolist(), strict=True)) == {
                10: 1,
                12: 4,
            }


@pytest.mark.slow
def test_a_state_that_three_branches_begin_with_is_one_row(tmp_path: Path) -> None:
    recorded(tmp_path)
    for resume in ("branch(10)", "branch(10)", "branch(10)"):
        with new_writer(tmp_path, resume=resume) as writer:
            name = f"eval_{writer.branch}"
            stream = writer.stream(f"{EVALUATION}every_5")
            stream.extend(["fc"], [Variable(name)])
            stream.record(10, 0, np.array([[writer.branch]], np.float32))
    record = open_record(tmp_path)
    view = record.streams["eval_every_5"]
    assert view.steps().tolist() == [0, 5, 10]
    assert [view.values(name, 2)[0].tolist() for name in ("eval_2", "eval_3", "eval_4")] == [
        [2],
        [3],
        [4],
    ]
    assert states_of(record) == same([0, 5, 10])


@pytest.mark.slow
@pytest.mark.parametrize("resume", [10, "branch(10)"])
def test_what_was_evaluated_late_is_cut_as_evaluations_are(tmp_path: Path, resume: Any) -> None:
    recorded(tmp_path)
    with new_writer(tmp_path) as writer:
        for states, of_states in (([10, 15], True), ([9, 10, 11], False)):
            name = "eval_rank" if of_states else "rank"
            values = np.array(states, np.float32)[:, None, None]
            writer.out_of_order.write(
                np.array(states), ["fc"], [Variable(name)], values, of_states=of_states
            )
    new_writer(tmp_path, resume=resume).close()
    record = open_record(tmp_path)
    assert record.series("fc", "eval_rank").step.values.tolist() == [10]
    assert record.series("fc", "rank").step.values.tolist() == [9]


def test_of_what_is_written_out_of_order_the_last_counts_whether_of_states_or_not(
    tmp_path: Path,
) -> None:
    truth: dict[int, float] = {}
    rng = np.random.default_rng(0)
    recorded(tmp_path, steps=range(5))
    with new_writer(tmp_path) as writer:
        for value in range(40):
            step = int(rng.integers(0, 8))
            values = np.array([[[value]]], np.float32)
            is_of_state = bool(rng.integers(2))
            writer.out_of_order.write(
                np.array([step]), ["fc"], [Variable("rank")], values, of_states=is_of_state
            )
            truth[step] = value
        rank = writer.source.series("fc", "rank")
        found = dict(zip(rank.step.values.tolist(), rank.values.tolist(), strict=True))
        assert found == truth
