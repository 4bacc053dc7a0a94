"""The units of a record: what they hold, and what becomes of an interrupted one."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from notebook_probe.errors import HookError, RecordWriteError
from notebook_probe.experiment.saving import read_units
from notebook_probe.experiment.saving.results import read_results
from notebook_probe.train.loop.recording import Recording
from tests.experiment.saving.lives import Life, life, place_of, saved_as

SAVE: dict[str, Any] = {
    "save_metrics_freq": 3, "save_valid_freq": 4, "save_filters_freq": 6, "cache_filters_freq": 4,
}  # fmt: skip


def steps(one: Life) -> list[int]:
    return [unit.step for unit in read_units(one.place)]


def test_units_have_their_results_their_time_and_their_checkpoint(tmp_path: Path) -> None:
    found = {"small": {"loss": torch.tensor(0.5), "said": "fine", "top": [1, 3]}}
    one = life(tmp_path, 8, watched=True, validated=found, config={"depth": 3}, **SAVE)
    units = {unit.step: unit for unit in read_units(one.place)}
    assert list(units) == [0, 3, 4, 6, 8]
    assert one.saver.record_ids == [unit.id for unit in units.values()]
    assert len({*one.saver.record_ids}) == 5
    assert {step for step, unit in units.items() if unit.saved_filters} == {0, 4, 6, 8}
    assert Path(units[4].checkpoint) == one.place.recent / "step_00000004.pt"
    assert Path(units[6].checkpoint) == one.place.checkpoints / "step_00000006.pt"
    expected = {"valid_small_loss": 0.5, "valid_small_said": "fine", "valid_small_top": 2.0}
    assert [dict(unit.validation) for unit in units.values()] == [
        expected,
        {},
        expected,
        {},
        expected,
    ]
    assert all(unit.duration >= 0 and unit.exp_id == "first" for unit in units.values())


def test_results_that_are_to_be_whole_are_arrays_and_the_others_means(tmp_path: Path) -> None:
    found = {"spread": torch.tensor([1.0, 3.0]), "top": torch.arange(3), "said": "a"}
    save = {**SAVE, "save_to_gfs": ["top"]}
    one = life(tmp_path, 4, watched=True, results=found, **save)
    run = nbp.open_run(one.place.record)
    assert run.series("", "spread").values.tolist() == [2.0] * 4
    assert run.series("", "top").values.tolist() == [[0, 1, 2]] * 4
    told = [json.loads(event.detail) for event in run.events if event.kind == "unit"]
    told = [one for one in told if "results" in one]
    assert told == [{"unit": k, "results": {"said": "a"}} for k in range(1, 5)]


def test_a_tail_is_closed_by_a_last_unit_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    one = life(tmp_path / "whole", 7, watched=True, **SAVE)
    assert steps(one) == [0, 3, 4, 6, 7]
    with pytest.raises(HookError, match="the loss is none"):
        life(tmp_path / "broken", 9, watched=True, fails_at=5, **SAVE)
    place = place_of(tmp_path / "broken", saved_as(**SAVE))
    assert [unit.step for unit in read_units(place)] == [0, 3, 4, 5]
    rows = nbp.open_run(place.record).series("", "loss")
    assert rows.step.values.tolist() == list(range(5))


@pytest.mark.slow
def test_a_training_that_goes_on_has_every_row_once_and_the_units_of_both(tmp_path: Path) -> None:
    with pytest.raises(HookError):
        life(tmp_path, 9, watched=True, fails_at=7, **SAVE)
    one = life(tmp_path, 9, watched=True, **SAVE)
    assert one.restored.resume == {"step": 6, "branch": False}
    assert steps(one) == [0, 3, 4, 6, 8, 9]
    whole = life(tmp_path / "other", 9, watched=True, **SAVE)
    found, expected = (nbp.open_run(life.place.record).series("", "loss") for life in (one, whole))
    np.testing.assert_array_equal(found.step, expected.step)
    np.testing.assert_array_equal(found.values, expected.values)


def test_what_was_found_of_the_state_that_training_goes_on_from_stays(tmp_path: Path) -> None:
    save: dict[str, Any] = {"save_filters_freq": 4, "save_valid_freq": 4}
    found = {"small": {"loss": 0.5, "said": "fine"}}
    life(tmp_path, 4, watched=True, validated=found, **save)
    one = life(tmp_path, 6, watched=True, **save)
    units = {unit.step: unit for unit in read_units(one.place)}
    assert list(units) == [0, 4, 5, 6]
    assert dict(units[4].validation) == {"valid_small_loss": 0.5, "valid_small_said": "fine"}
    assert units[0].duration >= 0


@pytest.mark.usefixtures("interruptible")
def test_a_unit_is_saved_where_the_user_interrupts(tmp_path: Path) -> None:
    one = life(tmp_path, 99, watched=True, results=Interrupting(5), **SAVE)
    assert one.loop.stopped
    assert steps(one) == [0, 3, 4, 5]
    assert life(tmp_path, 6, watched=True, **SAVE).restored.step == 4


class Interrupting(dict[str, Any]):
    """No results; interrupts the process, as Ctrl-C does, when it is asked for the n-th time."""

    def __init__(self, n: int) -> None:
        self.n = n

    def items(self) -> Any:
        self.n -= 1
        if not self.n:
            signal.raise_signal(signal.SIGINT)
        return super().items()


def test_a_record_that_cannot_be_written_stops_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(run: nbp.Run) -> None:
        raise RecordWriteError("no space left")

    save: dict[str, Any] = {"save_filters_freq": 4}
    with monkeypatch.context() as patch:
        patch.setattr(nbp.Run, "flush", full)
        patch.setattr(Recording, "ended", lambda recording, error: None)  # flushes, too
        life(tmp_path, 9, watched=True, **save)
    assert life(tmp_path, 9, **save).restored.step == 8


@pytest.mark.slow
def test_a_fresh_start_leaves_the_earlier_rows_on_a_branch(tmp_path: Path) -> None:
    life(tmp_path, 8, watched=True, **SAVE)
    one = life(tmp_path, 4, {"do_restore": False}, watched=True, **SAVE)
    assert one.restored.resume == {"step": 0, "branch": True}
    assert nbp.open_run(one.place.record).series("", "loss").sizes["step"] == 4
    before = nbp.open_run(one.place.record, branch=1)
    assert before.series("", "loss").sizes["step"] == 8
    assert Path(one.place.checkpoints, "step_00000006.pt").exists()
    again = life(tmp_path, 6, watched=True, **SAVE)
    assert again.restored.step == 4  # the newest by the time saved


def test_nothing_is_written_where_nothing_is_to_be_saved(tmp_path: Path) -> None:
    one = life(tmp_path, 8, do_save=False, validated={"small": {"loss": 1.0}}, **SAVE)
    assert one.saver.record_ids == []
    assert not any(tmp_path.iterdir())
    assert one.loop.last_metrics["valid_small_loss"] == 1.0


def test_state_zero_is_not_saved_where_it_is_not_wanted(tmp_path: Path) -> None:
    one = life(tmp_path, 2, save_initial_filters=False, **SAVE)
    assert one.saver.record_ids == ["first:2"]
    one = life(tmp_path / "b", 2, validated={"a": {"x": 1}}, save_initial_filters=False, **SAVE)
    assert one.saver.record_ids == ["first:0", "first:2"]


def test_checkpoints_know_what_validation_found_of_their_state(tmp_path: Path) -> None:
    one = life(tmp_path, 4, validated={"small": {"loss": 0.25}}, **SAVE)
    assert [saved.metrics.get("valid_small_loss") for saved in one.loop.checkpoints] == [None, 0.25]


def test_checkpoints_lie_where_the_cache_is_to_be(tmp_path: Path) -> None:
    life(tmp_path / "home", 8, cache_dir=tmp_path / "scratch", **SAVE)
    assert not (tmp_path / "home").exists()
    assert {path.name for path in (tmp_path / "scratch" / "vision" / "first").iterdir()} == {
        "checkpoints",
        "recent",
    }
    assert life(tmp_path / "home", 9, cache_dir=tmp_path / "scratch", **SAVE).restored.step == 8


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1.0),
        (np.float32(2.0), 2.0),
        (torch.tensor([[4]]), 4.0),
        (torch.tensor([1, 2]), 1.5),
        (torch.full((2,), 60000.0, dtype=torch.float16), 60000.0),
        (np.array([1, 2], np.int8), 1.5),
        ((1, 2.0), 1.5),
    ],
)
def test_what_has_several_elements_is_averaged_in_enough_bits(value: Any, expected: float) -> None:
    assert float(read_results({"a": value}, ()).numbers["a"]) == expected


def test_results_in_dicts_have_names_with_dots_and_empty_ones_are_missing() -> None:
    found = read_results({"a": {"b": 1, "c": torch.zeros(0)}, "d": [["x"], None]}, (), "valid_")
    assert found.numbers["valid_a.b"] == 1
    assert np.isnan(found.numbers["valid_a.c"])
    assert found.others == {"valid_d": [["x"], None]}


def test_what_validations_find_without_an_aggregation_is_kept_as_lists_of_dicts() -> None:
    given = {"result": [{"loss": torch.tensor(1.0), 3: float("nan")}, {"loss": np.ones(2)}]}
    found = read_results(given, (), "valid_a_")
    expected = [{"loss": 1.0, "3": "nan"}, {"loss": [1.0, 1.0]}]
    assert found.others == {"valid_a_result": expected}


@pytest.mark.parametrize("value", [object(), {"b": lambda: 1}, torch.ones(2) * 1j, {1, 2}])
def test_a_result_that_cannot_be_kept_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match=r"valid_a_top(\.b)? is "):
        read_results({"top": value}, (), "valid_a_")
