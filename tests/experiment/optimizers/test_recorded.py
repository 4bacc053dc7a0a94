"""A run that watches, a loop, and its checkpoints count one step for each group."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import StepLR

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError
from notebook_probe.experiment.optimizers import ClipOptimizer, MinibatchOptimizer
from notebook_probe.train import Loop, Trainer
from tests.experiment.optimizers.networks import batches, loss_of, network, same

N_STEPS = 3


def clip(model: nn.Sequential) -> Optimizer:
    return ClipOptimizer(SGD, model, lr=0.1, clipping_method="norm", clipping_value=0.5)


def minibatch(model: nn.Sequential) -> Optimizer:
    return MinibatchOptimizer(clip(model))


def clip_each(model: nn.Sequential) -> Optimizer:
    return MinibatchOptimizer(clip(model), clip_each_minibatch=True)


def several(model: nn.Sequential) -> Optimizer:
    params = [model[0].parameters(), model[2].parameters()]
    return MinibatchOptimizer(ClipOptimizer([SGD, Adam], params, lr=[0.1, 0.01]))


MADE: list[Callable[[nn.Sequential], Optimizer]] = [clip, minibatch, clip_each, several]


@pytest.mark.parametrize("made", MADE)
def test_a_group_is_one_step_of_the_record(made: Any, tmp_path: Path) -> None:
    model, bare = network(), network()
    optimizer, unwatched = made(model), made(bare)
    data = batches(2 * N_STEPS)
    with nbp.watch(
        model, optimizer, store=tmp_path / "run.zarr", probes={"": ["grad_norm"]}
    ) as run:
        assert all(type(one) in (SGD, Adam) for one in run.controls.optimizers)
        for i in range(0, len(data), 2):
            for own, its in ((model, optimizer), (bare, unwatched)):
                its.zero_grad()
                for batch in data[i : i + 2]:
                    loss_of(own, batch).backward()
                    if isinstance(its, MinibatchOptimizer):
                        its.accumulate_gradients(2)
                its.step()
        assert same(model, bare)
    norms = nbp.open_run(tmp_path / "run.zarr").data["grad_norm"].values.ravel()
    assert norms.shape == (N_STEPS,)
    if made in (clip, minibatch):  # what is applied has been clipped
        assert np.allclose(norms, 0.5)


@pytest.mark.parametrize("made", MADE)
def test_a_loop_that_goes_on_from_a_checkpoint_is_as_one_that_never_stopped(
    made: Any, tmp_path: Path
) -> None:
    def a_loop() -> Loop:
        model = network()
        optimizer = made(model)
        scheduler = StepLR(optimizer, 2, 0.5)
        return Loop(
            Trainer(model, nn.functional.mse_loss, optimizer, scheduler=scheduler, accumulate=2)
        )

    data = batches(12)
    whole, first, second = a_loop(), a_loop(), a_loop()
    whole.run_steps(data, 6)
    first.run_steps(data, 3)
    first.save_checkpoint(tmp_path)
    second.load_checkpoint(tmp_path)
    second.run_steps(data, 3)
    assert (second.n_updates, second.loop_step) == (6, 6)
    assert same(second.trainer.model, whole.trainer.model)


def test_a_checkpoint_of_the_optimizer_inside_fits_and_another_kind_does_not(
    tmp_path: Path,
) -> None:
    def a_loop(make: Callable[[nn.Module], Optimizer]) -> Loop:
        model = network()
        return Loop(Trainer(model, nn.functional.mse_loss, make(model)))

    loop = a_loop(lambda model: SGD(model.parameters(), lr=0.1))
    loop.run_steps(batches(2), 2)
    loop.save_checkpoint(tmp_path)
    again = a_loop(lambda model: ClipOptimizer(SGD, model, lr=0.1))
    again.load_checkpoint(tmp_path)
    assert again.n_updates == 2
    with pytest.raises(CheckpointError, match="optimizer: SGD there, Adam here"):
        a_loop(lambda model: ClipOptimizer(Adam, model)).load_checkpoint(tmp_path)


@pytest.mark.parametrize("scaled", [False, True])
def test_an_update_that_is_left_out_is_no_step_of_the_loop(scaled: bool) -> None:
    model = network()
    optimizer = ClipOptimizer(
        SGD, model, lr=0.1, clipping_method="norm", clipping_value=0.5, on_nonfinite="skip"
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0) if scaled else None
    loop = Loop(
        Trainer(model, nn.functional.mse_loss, optimizer, scaler=scaler), check_finite=False
    )
    data = batches(4)
    data[1][0][0, 0] = torch.nan
    loop.run_epochs(data, 1)
    assert (loop.n_updates, loop.skipped_steps) == (3, 1)
    assert all(bool(value.isfinite().all()) for value in model.parameters())
    assert optimizer.n_skipped == (0 if scaled else 1)  # the scaler was first


def test_what_was_set_by_hand_is_in_the_checkpoint(tmp_path: Path) -> None:
    def a_loop() -> Loop:
        model = network()
        optimizer = several(model)
        scheduler = StepLR(optimizer, 100, 0.5)
        return Loop(Trainer(model, nn.functional.mse_loss, optimizer, scheduler=scheduler))

    loop = a_loop()
    with loop.watch(store=tmp_path / "run.zarr", probes=None) as run:
        loop.on_step(lambda loop, metrics: run.set("lr", 0.02) if loop.loop_step == 0 else None)
        loop.run_steps(batches(3), 3)
    state = loop.trainer.state_dict()["options"]
    assert [row[:2] for row in state["factors"]] == [(0, "lr"), (1, "lr")]
    again = a_loop()
    again.trainer.load_state_dict(loop.trainer.state_dict())
    assert again.trainer.state_dict()["options"] == state
