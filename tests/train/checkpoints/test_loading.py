"""What is loaded of a checkpoint, and what does not fit."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.errors import CheckpointError
from tests.train.checkpoints.kinds import same_state
from tests.train.conftest import a_loop, batches, small_model

pytestmark = pytest.mark.filterwarnings("error")


def wider() -> nn.Sequential:
    model = small_model(3)
    model[3] = nn.Linear(8, 5)
    model.append(nn.PReLU())
    return model


def test_what_does_not_fit_is_one_error_and_nothing_has_changed(tmp_path: Path) -> None:
    saved = a_loop(scheduler=None)
    saved.save_checkpoint(tmp_path)
    model = wider()
    model[0] = nn.Linear(3, 8, bias=False)
    loop = a_loop(model=model, scaler=torch.amp.GradScaler("cpu"))
    loop.register_state("ema", nn.Linear(1, 1))
    before = copy.deepcopy(dict(model.state_dict()))
    with pytest.raises(CheckpointError) as refused:
        loop.load_checkpoint(tmp_path)
    said = str(refused.value)
    for part in (
        "does not fit Sequential: missing there: 4.weight; not in the model: 0.bias; other shapes: "
        "3.weight (2, 8) there, (5, 8) here, 3.bias (2,) there, (5,) here",
        "parts of the trainer missing there: scaler",
        "objects missing there: ema",
    ):
        assert part in said
    assert same_state(dict(model.state_dict()), before)


def test_the_state_of_another_kind_of_optimizer_is_refused(tmp_path: Path) -> None:
    saved = a_loop()
    saved.run_steps(batches(1), 1)
    saved.save_checkpoint(tmp_path)
    model = small_model(3)
    loop = a_loop(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
    with pytest.raises(CheckpointError, match="optimizer: AdamW there, SGD here"):
        loop.load_checkpoint(tmp_path)
    with pytest.warns(UserWarning, match="not loaded, so unchanged: optimizer: AdamW there"):
        loop.load_checkpoint(tmp_path, strict=False)
    assert same_state(dict(model.state_dict()), dict(saved.trainer.model.state_dict()))
    assert loop.run_steps(batches(2), 1) is not None


def test_what_fits_is_loaded_where_that_is_wanted(tmp_path: Path) -> None:
    saved, data = a_loop(), batches(3)
    saved.run_steps(data, 3)
    saved.save_checkpoint(tmp_path)
    loop = a_loop(model=wider())
    with pytest.warns(
        UserWarning, match=r"not loaded, so unchanged: missing there: 4.weight; other sha"
    ):
        loop.load_checkpoint(tmp_path, strict=False)
    own, there = loop.trainer.model.state_dict(), saved.trainer.model.state_dict()
    assert torch.equal(own["0.weight"], there["0.weight"])
    assert own["3.weight"].shape == (5, 8)
    assert loop.loop_step == 0


@pytest.mark.parametrize(
    "wanted", [["0.weight", "0.bias"], re.compile("0"), lambda name: name.startswith("0.")]
)
def test_some_weights_alone_are_loaded(tmp_path: Path, wanted: Any) -> None:
    saved = a_loop()
    saved.run_steps(batches(3), 3)
    saved.save_checkpoint(tmp_path)
    loop = a_loop(model=wider())
    loop.load_checkpoint(tmp_path, to_restore=wanted)
    own, there = loop.trainer.model.state_dict(), saved.trainer.model.state_dict()
    assert torch.equal(own["0.weight"], there["0.weight"])
    assert loop.loop_step == 0
    with pytest.raises(
        ValueError, match=r"to_restore: '0.wieght' is no entry of the checkpoint; c"
    ):
        loop.load_checkpoint(tmp_path, to_restore=["0.wieght"])
    with pytest.raises(CheckpointError, match=r"means none of 0.weight, 0.bias"):
        loop.load_checkpoint(tmp_path, to_restore=re.compile("1"))
    with pytest.raises(CheckpointError, match="means none of"):  # it fits from the start of names
        loop.load_checkpoint(tmp_path, to_restore=re.compile("weight"))


def test_renamed_weights_go_on_with_all_the_rest(tmp_path: Path) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.first(x))

    saved, data = a_loop(model=nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))), batches(6)
    saved.run_steps(data, 3)
    saved.save_checkpoint(tmp_path)
    saved.run_steps(data[3:], 3)
    loop = a_loop(model=Named())
    names = {f"{k}.{one}": f"{new}.{one}" for k, new in enumerate(["first", "last"])
             for one in ("weight", "bias")}  # fmt: skip
    loop.load_checkpoint(tmp_path, renames=names)
    loop.run_to_global_step(data, 6)
    own, there = loop.trainer.model.state_dict(), saved.trainer.model.state_dict()
    assert all(torch.equal(own[new], there[old]) for old, new in names.items())
    with pytest.raises(ValueError, match=r"renames: 'fist.weight' is no entry of the model; close"):
        loop.load_checkpoint(tmp_path, renames={"0.weight": "fist.weight"})
    with pytest.raises(ValueError, match=r"renames: 'first.bias' of the model would come from sev"):
        loop.load_checkpoint(tmp_path, renames={"0.weight": "first.bias", "0.bias": "first.bias"})


def test_weights_alone_can_be_counted_on_from_their_step(tmp_path: Path) -> None:
    saved, data = a_loop(), batches(6)
    saved.run_steps(data, 3)
    saved.save_checkpoint(tmp_path)
    loop = a_loop()
    scheduler = torch.optim.lr_scheduler.StepLR(loop.trainer.optimizer, 2, 0.5)
    loop.trainer.scheduler = scheduler
    rate = loop.trainer.optimizer.param_groups[0]["lr"]
    loop.load_checkpoint(tmp_path, to_restore=lambda name: True)
    loop.begin_at(3)
    assert loop.trainer.optimizer.param_groups[0]["lr"] == rate / 2
    loop.run_to_global_step(data, 6)
    assert loop.trainer.global_step == 6
    assert loop.trainer.optimizer.param_groups[0]["lr"] == rate / 8
    with pytest.raises(ValueError, match=r"begin_at\(3\): the loop is at step 6 already"):
        loop.begin_at(3)
