"""From where a training goes on: the first rule that applies."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LoadParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring import Restored, restore
from notebook_probe.experiment.saving import read_units
from notebook_probe.opened import open_run
from tests.experiment.saving.lives import Life, life
from tests.train.checkpoints.kinds import loop_of, same_state

SAVE: dict[str, Any] = {"save_filters_freq": 4, "cache_filters_freq": 2}


def another(folder: Path, load: dict[str, Any] | None, **save: Any) -> Life:
    """A second experiment of the collection, that trains nothing."""
    return life(folder, 0, load, **{**SAVE, "exp_id": "second", **save})


def same_weights(one: Life, other: Life) -> bool:
    states = [dict(life.loop.trainer.model.state_dict()) for life in (one, other)]
    return same_state(*states)


def test_1_nothing_is_restored_where_that_is_not_wanted(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    load = {"do_restore": False, "from_ckpt": "nowhere.pt"}
    again = life(tmp_path, 0, load, **SAVE)
    assert again.restored == Restored(1)
    assert not same_weights(again, first)


def test_2_the_own_place_comes_before_a_file_and_another_place(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    second = life(tmp_path, 2, **{**SAVE, "exp_id": "second"})
    load = {
        "exp_id": "first",
        "from_ckpt": str(first.place.recent / "step_00000006.pt"),
        "restore_global_step": False,
        "to_restore": ["0.weight"],
        "load_param_dict": {"0.weight": "nowhere"},
        "query": {"step": 4},
    }
    again = another(tmp_path, load)
    assert (again.restored.rule, again.restored.step) == (2, 2)
    assert same_weights(again, second)
    data = [one.loop.state_dict()["data"] for one in (again, second)]
    assert same_state(*data)


@pytest.mark.parametrize(
    ("until", "folder"), [(4, "checkpoints"), (5, "checkpoints"), (6, "recent")]
)
def test_2_the_newest_is_that_saved_last_of_both_kinds(
    tmp_path: Path, until: int, folder: str
) -> None:
    life(tmp_path, until, **SAVE)
    again = life(tmp_path, 0, **SAVE)
    assert again.restored.step == until // 2 * 2
    assert Path(again.restored.path).parent.name == folder


def test_3_a_file_comes_before_another_place(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    file = str(first.place.checkpoints / "step_00000004.pt")
    again = another(tmp_path, {"from_ckpt": file, "exp_id": "first"})
    assert (again.restored.rule, again.restored.step, again.restored.path) == (3, 4, file)
    assert again.restored.left == ""
    fresh = another(tmp_path, {"from_ckpt": file, "restore_global_step": False})
    assert fresh.restored.step == 0
    assert same_weights(fresh, again)


@pytest.mark.parametrize("file", ["nowhere.pt", "nowhere/at/all.pt"])
def test_3_a_file_that_is_not_there_is_named(tmp_path: Path, file: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        another(tmp_path, {"from_ckpt": str(tmp_path / file)})


def test_4_the_newest_of_another_place(tmp_path: Path) -> None:
    first = life(tmp_path, 6, watched=True, config={"seed": 3}, **SAVE)
    again = another(tmp_path, {"exp_id": "first"})
    assert (again.restored.rule, again.restored.step) == (4, 6)
    assert same_weights(again, first)
    assert again.restored.record_id == first.saver.record_ids[-1]
    assert again.restored.config == {"seed": 3}
    moments, kept = (one.loop.trainer.optimizer.state_dict()["state"] for one in (again, first))
    assert same_state(moments, kept)


@pytest.mark.parametrize("load", [{"exp_id": "third"}, {"exp_id": "first", "query": {"step": 5}}])
def test_4_where_nothing_is_meant_it_is_an_error(tmp_path: Path, load: dict[str, Any]) -> None:
    life(tmp_path, 6, **SAVE)
    with pytest.raises(
        FileNotFoundError, match=r"no checkpoint in .*vision of a unit with .*exp_id"
    ):
        another(tmp_path, load)


def test_4_a_test_loads_what_its_own_place_has(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    loop, _ = loop_of("mlp", scheduler=None)
    load = read(LoadParams, {"query": {"step": 4}}, "load_params")
    restored = restore(loop, first.place, load, is_saving=False)
    assert (restored.rule, restored.step) == (4, 4)
    with pytest.raises(FileNotFoundError):
        restore(loop, ExperimentFolder(tmp_path, exp_id="x"), load, is_saving=False)


def test_5_otherwise_training_is_fresh(tmp_path: Path) -> None:
    assert life(tmp_path, 0, **SAVE).restored == Restored(5)
    assert life(tmp_path, 0, {"exp_id": "first"}, **SAVE).restored == Restored(5)


def test_a_query_of_the_own_place_is_pointless(tmp_path: Path) -> None:
    life(tmp_path, 6, **SAVE)
    for load in ({"query": {"step": 4}}, {"exp_id": "first", "query": {"step": 4}}):
        with pytest.raises(ValueError, match="pointless"):
            life(tmp_path, 0, load, **SAVE)


def test_of_a_loaded_training_state_zero_is_not_saved(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    load = {"exp_id": "first", "restore_global_step": False}
    second = life(tmp_path, 2, load, **{**SAVE, "exp_id": "second"})
    assert second.saver.record_ids == ["second:2"]
    assert next(iter(read_units(first.place))).step == 0


def test_a_restart_of_a_loaded_training_goes_on_with_itself(tmp_path: Path) -> None:
    life(tmp_path, 6, **SAVE)
    load, save = {"exp_id": "first", "to_restore": ["0.weight"]}, {**SAVE, "exp_id": "second"}
    whole = life(tmp_path / "whole", 6, **SAVE) and life(tmp_path / "whole", 12, load, **save)
    life(tmp_path, 9, load, **save)
    again = life(tmp_path, 12, load, **save)
    assert (again.restored.rule, again.restored.step) == (2, 8)
    assert same_weights(again, whole)


def test_the_learning_rate_is_that_of_the_restored_step(tmp_path: Path) -> None:
    first = life(tmp_path, 6, **SAVE)
    loop, data = loop_of("mlp")
    optimizer = loop.trainer.optimizer
    loop.trainer.scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k))
    base = optimizer.param_groups[0]["initial_lr"]
    load = read(LoadParams, {"exp_id": "first"}, "load_params")
    restore(
        loop, ExperimentFolder(tmp_path, dbname="vision", exp_id="second"), load, is_saving=True
    )
    assert optimizer.param_groups[0]["lr"] == pytest.approx(base / 7)
    assert first.loop.n_updates == loop.n_updates == 6
    loop.run_steps(data, 1)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(base / 8)


CONTINUED: dict[str, Any] = {"save_valid_freq": 3, "save_metrics_freq": 1}


def check_ids_units_and_steps(one: Life, first: int, last: int) -> None:
    """Hold that ids, units, validations and recorded steps are numbers of updates."""
    units = [unit for unit in read_units(one.place) if unit.step > first]
    assert [unit.step for unit in units] == [*range(first + 1, last + 1)]
    ids = {unit.id: unit.step for unit in units}
    saved = [found for found in one.saver.record_ids if not found.endswith(":0")]
    assert [ids[found] for found in saved] == [*range(first + 1, last + 1)]
    validated = {unit.step for unit in units if "valid_test_accuracy" in unit.validation}
    assert validated == {step for step in range(first + 1, last + 1) if step % 3 == 0}
    run = open_run(one.place.record)
    assert run.series("", "loss").step.values.tolist() == [*range(first, last)]
    recorded = run.series("", "valid_test_accuracy").step.values.tolist()
    assert [step for step in recorded if step] == sorted(validated)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["from_ckpt", "exp_id", "record removed"])
def test_a_training_that_goes_on_from_a_state_counts_on_in_its_record(
    tmp_path: Path, way: str
) -> None:
    validated = {"test": {"accuracy": 0.5}}
    first = life(tmp_path, 9, watched=True, validated=validated, **{**SAVE, **CONTINUED})
    check_ids_units_and_steps(first, 0, 9)
    step = 8  # of the last checkpoint
    load: dict[str, Any] | None = None
    save: dict[str, Any] = {**SAVE, **CONTINUED, "exp_id": "second"}
    if way == "from_ckpt":
        load = {"from_ckpt": str(first.place.checkpoints / "step_00000008.pt")}
    elif way == "exp_id":
        load = {"exp_id": "first"}
    else:
        save["exp_id"] = "first"
        shutil.rmtree(first.place.record)
    on = life(tmp_path, 14, load, watched=True, validated=validated, **save)
    assert on.restored.step == step
    check_ids_units_and_steps(on, step, 14)
    again = life(tmp_path, 18, load, watched=True, validated=validated, **save)
    assert again.restored.rule == 2
    assert open_run(again.place.record).series("", "loss").step.values.tolist() == [
        *range(step, 18)
    ]
