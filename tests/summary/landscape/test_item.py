"""The collector's landscape: snapshots amid a training, and what is drawn between two steps."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn
from torch.nn.functional import cross_entropy

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.summary.landscape.item import LandscapeItem
from notebook_probe.summary.landscape.metadata import FOLDER, NAME
from notebook_probe.summary.landscape.stored import StoredSnapshots
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.train import Dataset
from tests.summary.conftest import Collect, Small, a_loop, images

OWN = {"intervals": [[1, 2, 3], [4, 5, 6]], "landscape_size": 4}


def asked(**own: Any) -> dict[str, Any]:
    return {"collect_specified_data": {"collect_landscape": {**OWN, **own}}}


def drawing(**own: Any) -> dict[str, Any]:
    return asked(batches=images(1, seed=9), loss_fn=cross_entropy, **own)


def groups(folder: Path) -> Any:
    return json.loads((folder / "summary" / FOLDER / NAME).read_text())["groups"]


@pytest.mark.slow
def test_snapshots_are_the_states_after_their_steps(collector: Collect, tmp_path: Path) -> None:
    loop, states = a_loop(), {}
    loop.add(collector(**asked()))
    loop.on_step(
        lambda loop, metrics: states.update(
            {loop.loop_step + 1: loop.trainer.model.fc.weight.detach().clone()}
        )
    )
    loop.run_epochs(images(4), 2)
    stored = StoredSnapshots.at(tmp_path / "summary")
    assert groups(tmp_path) == [[1, 2, 3], [4, 5, 6]]
    for unit in range(1, 7):
        assert torch.equal(stored.read(unit).parameters["fc.weight"], states[unit])
    assert stored.metadata.steps_per_epoch == 4
    assert len(stored.metadata.losses) == 6


def test_epochs_are_counted_where_they_end(collector: Collect, tmp_path: Path) -> None:
    loop, states = a_loop(), {}
    loop.add(collector(**asked(unit="epoch", intervals=[[1, 2, 4]])))
    loop.on_epoch(
        lambda loop: states.update({loop.epoch: loop.trainer.model.fc.weight.detach().clone()})
    )
    loop.run_epochs(images(2), 4)
    stored = StoredSnapshots.at(tmp_path / "summary")
    assert groups(tmp_path) == [[1, 2, 4]]
    for unit in (1, 2, 4):
        assert torch.equal(stored.read(unit).parameters["fc.weight"], states[unit])


@pytest.mark.slow
def test_in_a_loop_of_ones_own_steps_are_counted(collector: Collect, tmp_path: Path) -> None:
    model, data = Small(), images(8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    states = {}
    with (
        nbp.watch(model, optimizer, store=tmp_path / "own.zarr", probes=None) as run,
        collector(**drawing()).attach(run),
    ):
        for unit, (x, y) in enumerate(data, 1):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            states[unit] = model.fc.weight.detach().clone()
    stored = StoredSnapshots.at(tmp_path / "summary")
    for unit in range(1, 7):
        assert torch.equal(stored.read(unit).parameters["fc.weight"], states[unit])
    assert nbp.landscape(tmp_path / "summary").number.values.tolist() == [4, 5, 6]


def test_epochs_of_a_loop_of_ones_own_are_refused_and_training_goes_on(
    collector: Collect, tmp_path: Path
) -> None:
    model = nn.Linear(2, 1)
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        one = collector(**asked(unit="epoch"))
        with pytest.warns(RecordWarning, match="collect_landscape is off.*needs a Loop"):
            one.attach(run)


def test_what_it_comes_to_is_said_as_it_begins(collector: Collect) -> None:
    loop, one = a_loop(), collector(**asked())
    loop.add(one)
    loop.run_steps(images(2), 2)
    assert one.run is not None
    [said] = [event.text for event in one.run.all_events if event.kind == "landscape"]
    assert said.startswith("6 snapshots of 0.000488 MB, 0.00293 MB in ")


@pytest.mark.slow
def test_landscapes_are_drawn_between_two_steps_and_are_in_the_record(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector(**drawing())
    loop.add(one)
    loop.run_steps(images(9), 9)
    folder = tmp_path / "summary"
    assert one.run is not None
    one.run.flush()
    train = one.run.series("", "landscape_train")
    assert train.step.values.tolist() == [2, 5], "as the intervals end"
    for interval in (0, 1):
        kept = nbp.landscape(folder, interval=interval)
        np.testing.assert_allclose(train[interval], kept.loss, rtol=1e-6)
    result = nbp.landscape(folder, which="result")
    np.testing.assert_allclose(one.run.series("", "landscape_result")[0], result.loss, rtol=1e-6)
    for source in (one.run, nbp.open_run(folder / "record.zarr")):
        for interval in (0, 1):
            in_record = nbp.landscape(source, interval=interval)
            kept = nbp.landscape(folder, interval=interval)
            xr.testing.assert_allclose(in_record, kept, rtol=1e-6)
            assert in_record.attrs == kept.attrs
        assert nbp.landscape(source, which="result").attrs == result.attrs
        with pytest.raises(nbp.NotLookedError, match=r"interval=2\): 2 of this kind"):
            nbp.landscape(source, interval=2)
    again = nbp.landscape(folder, Small(), cross_entropy, images(1, seed=9), progress=False)
    xr.testing.assert_allclose(again.drop_attrs(), nbp.landscape(folder).drop_attrs())


@pytest.mark.slow
def test_losses_that_are_not_finite_come_out_of_the_record_as_they_are(
    collector: Collect,
) -> None:
    loop = a_loop()
    one = collector(**asked(batches=images(1), loss_fn=lambda outputs, y: outputs.sum() / 0.0))
    loop.add(one)
    loop.run_steps(images(7), 7)
    assert one.run is not None
    one.run.flush()
    found = nbp.landscape(one.run)
    assert np.isinf(found.loss).any()
    assert np.isinf(found.attrs["loss_at_origin"])
    assert not np.isfinite(found.path_loss).any()


def test_of_a_run_without_a_landscape_that_is_said(collector: Collect) -> None:
    loop, one = a_loop(), collector(**asked())
    loop.add(one)
    loop.run_steps(images(7), 7)
    assert one.run is not None
    with pytest.raises(nbp.NotLookedError, match="0 of this kind are in the record"):
        nbp.landscape(one.run)


def test_one_of_the_two_may_be_left_off(collector: Collect, tmp_path: Path) -> None:
    loop = a_loop()
    loop.add(collector(**drawing(create_landscape={"train": False})))
    loop.run_steps(images(7), 7)
    names = {path.name for path in (tmp_path / "summary" / FOLDER).glob("*.zarr")}
    assert names == {"result_6.zarr"}


@pytest.mark.parametrize("options", [asked(), drawing()], ids=["kept", "drawn"])
def test_the_weights_come_out_equal_bit_for_bit(
    collector: Collect, options: dict[str, Any]
) -> None:
    class Noisy(Small):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(nn.functional.dropout(x, training=self.training))

    torch.manual_seed(3)
    plain, collected = a_loop(Noisy()), a_loop(Noisy())
    collected.trainer.model.load_state_dict(plain.trainer.model.state_dict())
    collected.add(collector(**options))
    for loop in (plain, collected):
        torch.manual_seed(1)
        loop.run_epochs(images(4), 2)
    for one, other in zip(
        plain.trainer.model.parameters(), collected.trainer.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


def test_a_training_that_does_not_move_has_no_plane_which_is_said(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector(**drawing())
    loop.trainer.optimizer.param_groups[0]["lr"] = 0.0
    loop.add(one)
    loop.run_steps(images(7), 7)
    assert one.run is not None
    said = [event.text for event in one.run.all_events if event.kind == "landscape"]
    assert "train_1-3: the parameters do not move between the snapshots: there is no plane" in said
    assert (tmp_path / "summary" / FOLDER / "result_6.zarr").is_dir()


def test_a_stop_ends_what_is_drawn_and_the_training(collector: Collect, tmp_path: Path) -> None:
    loop = a_loop()

    def stopping(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        threading.Timer(0, loop.stop, ["enough"]).start()
        return cross_entropy(outputs, targets)

    given = asked(batches=images(1), loss_fn=stopping, landscape_size=256)
    one = collector(**given)
    loop.add(one)
    loop.run_steps(images(9), 9)
    assert loop.loop_step < 9
    assert one.run is not None
    assert "train_1-3: cancelled" in [event.text for event in one.run.all_events]
    assert not [*(tmp_path / "summary" / FOLDER).glob("*.zarr")]


def test_a_loss_that_raises_turns_it_off_and_training_goes_on(collector: Collect) -> None:
    def failing(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        raise ValueError("no loss today")

    loop = a_loop()
    loop.add(collector(**asked(batches=images(1), loss_fn=failing)))
    with pytest.warns(RecordWarning, match="collect_landscape is off for this training: no loss"):
        loop.run_steps(images(9), 9)
    assert loop.loop_step == 9


def test_a_second_run_of_the_loop_goes_on_with_its_snapshots(
    collector: Collect, tmp_path: Path
) -> None:
    loop, data = a_loop(), Dataset(images(20))
    loop.add(collector(**asked()))
    for n in (2, 3, 4):
        loop.run_steps(data, n)
    assert groups(tmp_path) == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("own", "error", "why"),
    [
        ({"landscape_size": 2}, ValueError, "3 to 256"),
        ({"batches": []}, ValueError, "both batches and loss_fn"),
        ({"batches": 3, "loss_fn": print}, TypeError, "an iterable"),
        ({"batches": iter([]), "loss_fn": print}, TypeError, "gone through once"),
        ({"batches": [], "loss_fn": 3}, TypeError, "a function"),
    ],
)
def test_mistakes_are_answered_before_a_training_begins(
    collector: Collect, own: Any, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        collector(collect_specified_data={"collect_landscape": own})


def test_it_is_on_by_default_and_off_by_none(tmp_path: Path) -> None:
    def read(**given: Any) -> LandscapeItem | None:
        one = nbp.SummaryCollector(str(tmp_path), collect_specified_data=given)
        return LandscapeItem.read(one.settings)

    assert isinstance(read(), LandscapeItem)
    assert read(collect_landscape=None) is None
    assert isinstance(nbp.SummaryCollector(str(tmp_path)).settings, CollectorSettings)
