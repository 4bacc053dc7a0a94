"""What of a checkpoint is taken, and what begins fresh."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.errors import CheckpointError
from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LoadParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring import Restored, restore
from notebook_probe.train import Loop, Trainer
from tests.experiment.saving.lives import life
from tests.train.checkpoints.kinds import mlp, same_state

SAVE: dict[str, Any] = {"save_filters_freq": 4}
NAMES = ["0.weight", "0.bias", "3.weight", "3.bias"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    life(folder, 4, **SAVE)
    return folder


def loop_with(model: nn.Module, optimizer: Any = torch.optim.AdamW) -> Loop:
    return Loop(Trainer(model, nn.functional.cross_entropy, optimizer(model.parameters(), 1e-2)))


def loaded(folder: Path, model: nn.Module, own: bool = False, **load: Any) -> tuple[Loop, Restored]:
    loop = loop_with(model)
    params = read(LoadParams, {} if own else {"exp_id": "first", **load}, "load_params")
    if own:
        params = read(LoadParams, load, "load_params")
    place = ExperimentFolder(folder, dbname="vision", exp_id="first" if own else "second")
    return loop, restore(loop, place, params, is_saving=True)


def taken(loop: Loop, folder: Path) -> list[str]:
    """The weights that are as they were saved."""
    there = loop_with(mlp())
    there.load_checkpoint(folder / "vision" / "first" / "checkpoints")
    own, saved = (dict(one.trainer.model.state_dict()) for one in (loop, there))
    return [name for name in own if name in saved and same_state(own[name], saved[name])]


def wider() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 5), nn.PReLU())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["0.weight", "3.bias"], ["0.weight", "3.bias"]),
        (re.compile("0"), ["0.weight", "0.bias"]),
        (re.compile("weight"), None),  # anchored at the start
        (re.compile(".*weight"), ["0.weight", "3.weight"]),
        (lambda names: [name for name in names if name.endswith("bias")], ["0.bias", "3.bias"]),
        (lambda names: names[:1], ["0.weight"]),
        (lambda names: [], None),
    ],
)
def test_weights_are_chosen_by_names_pattern_or_function(
    saved: Path, wanted: Any, expected: list[str] | None
) -> None:
    if expected is None:
        with pytest.raises(CheckpointError, match="means none of"):
            loaded(saved, mlp(), to_restore=wanted)
        return
    loop, restored = loaded(saved, mlp(), to_restore=wanted)
    assert taken(loop, saved) == expected
    assert restored.step == loop.n_updates == 4
    assert "the optimizer" in restored.left
    assert not loop.trainer.optimizer.state_dict()["state"]


def test_a_function_that_names_what_is_not_there_is_an_error(saved: Path) -> None:
    with pytest.raises(ValueError, match=r"'0.wieght' is no entry of the checkpoint"):
        loaded(saved, mlp(), to_restore=lambda names: ["0.wieght"])


def test_names_are_changed_first_and_chosen_as_they_were_saved(saved: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 3))
    names = {"3.weight": "1.weight", "3.bias": "1.bias"}
    loop, restored = loaded(saved, model, load_param_dict=names)
    assert restored.left == "the optimizer, as of weights alone"
    there = loaded(saved, mlp())[0].trainer.model.state_dict()
    assert torch.equal(loop.trainer.model.state_dict()["1.bias"], there["3.bias"])
    loop, _ = loaded(saved, model, load_param_dict=names, to_restore=["3.bias"])
    assert torch.equal(loop.trainer.model.state_dict()["1.bias"], there["3.bias"])


@pytest.mark.parametrize("names", [{"3.weight": "head.weight"}, {"head": "3.weight"}])
def test_names_that_nobody_knows_are_refused(saved: Path, names: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="renames: 'head"):
        loaded(saved, mlp(), load_param_dict=names)


def test_of_another_place_what_is_absent_begins_fresh_and_shapes_are_refused(saved: Path) -> None:
    model = mlp()
    assert isinstance(model, nn.Sequential)
    model.append(nn.PReLU())
    _, restored = loaded(saved, model)
    assert restored.left == "missing there: 4.weight; the optimizer, as of weights alone"
    before = dict(wider().state_dict())
    model = wider()
    model.load_state_dict(before)
    with pytest.raises(CheckpointError, match=r"other shapes: 3.weight \(3, 8\) there, \(5, 8\) h"):
        loaded(saved, model)
    assert same_state(dict(model.state_dict()), before)
    loop, restored = loaded(saved, model, strict=False)
    assert taken(loop, saved) == ["0.weight", "0.bias"]
    assert "missing there: 4.weight; other shapes: 3.weight" in restored.left


def test_of_the_own_place_everything_that_differs_is_one_error(saved: Path) -> None:
    model = wider()
    model[0] = nn.Linear(3, 8, bias=False)
    with pytest.raises(CheckpointError) as refused:
        loaded(saved, model, own=True)
    for part in ("missing there: 4.weight", "not in the model: 0.bias", "other shapes: 3.weight"):
        assert part in str(refused.value)
    loop, restored = loaded(saved, model, own=True, strict=False)
    assert (restored.rule, restored.step) == (2, 4)
    assert taken(loop, saved) == ["0.weight"]
    assert "not in the model: 0.bias" in restored.left


def test_what_begins_fresh_is_told(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, restored = loaded(saved, wider(), strict=False)
    assert capsys.readouterr().out == f"of {restored.path} not all is taken: {restored.left}\n"
    loaded(saved, mlp())
    assert capsys.readouterr().out == ""


def test_moments_of_another_kind_of_optimizer_begin_fresh(saved: Path) -> None:
    loop = loop_with(mlp(), torch.optim.SGD)
    load = read(LoadParams, {"exp_id": "first"}, "load_params")
    place = ExperimentFolder(saved, dbname="vision", exp_id="second")
    restored = restore(loop, place, load, is_saving=True)
    assert restored.left == "optimizer: AdamW there, SGD here"
    assert taken(loop, saved) == NAMES


def test_settings_of_the_optimizer_are_those_of_the_new_training(saved: Path) -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.5, weight_decay=0.25)
    loop = Loop(Trainer(model, nn.functional.cross_entropy, optimizer))
    load = read(LoadParams, {"exp_id": "first"}, "load_params")
    restore(loop, ExperimentFolder(saved, dbname="vision", exp_id="second"), load, is_saving=True)
    group = optimizer.param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (0.5, 0.25)
    assert len(optimizer.state_dict()["state"]) == 4


def test_weights_alone_are_no_checkpoint(tmp_path: Path) -> None:
    torch.save(mlp().state_dict(), tmp_path / "weights.pt")
    with pytest.raises(CheckpointError, match=r"weights.pt is no checkpoint of a loop"):
        loaded(tmp_path, mlp(), from_ckpt=str(tmp_path / "weights.pt"))
