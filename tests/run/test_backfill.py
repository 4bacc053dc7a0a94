"""Writing into steps that have passed, of a run that is being trained."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import ConvNet, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.loops import training
from tests.run.traces import n_hooks

batch = floats(5, 4)


def states(model: nn.Module, run: nbp.Run | None, n_steps: int) -> list[dict[str, Tensor]]:
    """Train; the state before every step and after the last."""
    optimizer, kept = sgd(model), [copy.deepcopy(model.state_dict())]
    for step in range(n_steps):
        train_step(model, optimizer, batch(step))
        kept.append(copy.deepcopy(model.state_dict()))
    return kept


def output_norm(state: dict[str, Tensor], x: Tensor) -> float:
    twin = made(mlp).eval()
    twin.load_state_dict(state)
    return float(twin(x).detach().double().norm())


def test_old_checkpoints_are_evaluated_at_their_steps(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"": ["output_norm"]})
    run.attach("", "output_norm", "every(50)", phase="eval")
    kept = states(model, run, 6)
    for step in (4, 1, 6):
        with run.at_step(step), torch.no_grad():
            model.load_state_dict(kept[step])
            model.eval()(batch(99))
    series = run.series("", "eval_output_norm")
    assert series.step.values.tolist() == [1, 4, 6]
    expected = [output_norm(kept[step], batch(99)) for step in (1, 4, 6)]
    np.testing.assert_allclose(series, expected, rtol=1e-6)
    assert run.series("", "output_norm").step.values.tolist() == [*range(6)]
    run.close()
    stored = nbp.open_run(run.location).series("", "eval_output_norm")
    np.testing.assert_allclose(stored, expected, rtol=1e-6)


def test_the_last_evaluation_of_a_step_is_the_one_that_is_read(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "output_norm", phase="eval")
    states(model, run, 3)
    for seed in (5, 6):
        with run.at_step(2), torch.no_grad():
            model.eval()(batch(seed))
    assert run.series("", "eval_output_norm").step.values.tolist() == [2]
    expected = output_norm(model.state_dict(), batch(6))
    assert run.series("", "eval_output_norm").item() == pytest.approx(expected, rel=1e-6)


def test_training_goes_on_as_if_nothing_had_been_evaluated(watch: Watch, tmp_path: Path) -> None:
    """The twin is never evaluated: its record and its weights are equal, bit for bit."""
    model, twin = made(mlp), made(mlp)
    run, twins = watch(model), watch(twin)
    run.attach("*", "output_norm", phase="eval")
    optimizers = sgd(model), sgd(twin)
    for step in range(6):
        train_step(model, optimizers[0], batch(step))
        train_step(twin, optimizers[1], batch(step))
        if step % 2:
            state = copy.deepcopy(model.state_dict())
            with run.at_step(0):
                model.load_state_dict(made(mlp).state_dict())
                model(batch(step)).sum().backward()  # in training mode, with gradients
                model[0](batch(step))
            model.zero_grad()
            model.load_state_dict(state)
            model.train()
            assert run.status().step == step + 1
    run.close()
    twins.close()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, other)
    names = [*twins.data.data_vars]
    left, right = run.data[names].drop_vars("time"), twins.data[names].drop_vars("time")
    assert left.identical(right.assign_attrs(left.attrs))


def test_what_is_logged_inside_lies_at_that_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.log(loss=float(step))
    with run.at_step(1):
        run.log(loss=-1.0, test_loss=torch.tensor(0.5))
    train_step(model, optimizer, batch(3))
    run.log(loss=3.0)
    assert run.series("", "loss").values.tolist() == [0, -1, 2, 3]
    assert run.series("", "test_loss").step.values.tolist() == [1]


def test_an_evaluation_after_the_run_of_a_checkpoint_is_part_of_its_record(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path, probes={"0": ["weight_norm"]}):
        kept = states(model, None, 4)
    later = made(mlp)
    with nbp.watch(later, store=tmp_path, probes=None, resume=True) as run:
        run.attach("", "output_norm", phase="eval")
        for step, state in enumerate(kept):
            with run.at_step(step), torch.no_grad():
                later.load_state_dict(state)
                later.eval()(batch(9))
    record = nbp.open_run(tmp_path)
    expected = [output_norm(state, batch(9)) for state in kept]
    np.testing.assert_allclose(record.series("", "eval_output_norm"), expected, rtol=1e-6)
    assert record.series("0", "weight_norm").step.values.tolist() == [0, 1, 2, 3]


def test_an_error_inside_ends_it_and_keeps_what_was_measured(watch: Watch) -> None:
    model = made(ConvNet)
    run = watch(model, probes=None)
    run.attach("conv1", "output_norm", phase="eval")
    images = torch.ones(2, 1, 6, 6)

    def fail() -> None:
        with run.at_step(3), torch.no_grad():
            model.eval()(images)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert run.series("conv1", "eval_output_norm").step.values.tolist() == [3]
    train(model.train(), sgd(model), lambda step: images, range(2))
    assert run.status().step == 2
    run.close()
    assert n_hooks(model) == 0


class CallsSeen:
    """Calls since the last due step."""

    def reset(self) -> None:
        self.n = 0

    def update(self, output: Tensor) -> None:
        self.n += 1

    def compute(self) -> int:
        return self.n


def test_quantities_of_several_steps_take_no_old_checkpoint_in(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    quantities = [nbp.window_quantity(CallsSeen), "dead_fraction", "output_norm"]
    run.attach("0", quantities, "linear(2,1)", phase="eval")
    for step in range(4):
        with torch.no_grad():
            model.eval()(batch(step))
            with run.at_step(1):
                model(batch(9))
        train_step(model.train(), sgd(model), batch(step))
    run.controls.settle()
    assert not run.status().errors
    seen = run.series("0", "eval_calls_seen")
    assert seen.step.values.tolist() == [1, 3]
    assert seen.values.tolist() == [2.0, 2.0], "one of each state"
    assert run.series("0", "eval_dead_fraction").step.values.tolist() == [1, 3]


def test_vectors_are_evaluated_at_old_steps_too(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("1", "output_histogram", phase="eval")
    states(model, run, 3)
    with run.at_step(1), torch.no_grad():
        model.eval()(batch(0))
    histogram = run.series("1", "eval_output_histogram")
    assert histogram.step.values.tolist() == [1]
    assert histogram.sum() == 5 * 8


def test_vectors_of_every_modules_own_length_are_evaluated_too(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("*", "input_channel_mean", phase="eval")
    kept = states(model, run, 3)
    for step in (2, 0, 1, 2):
        with run.at_step(step), torch.no_grad():
            model.load_state_dict(kept[step])
            model.eval()(batch(step))
    run.close()
    for seen in (run, nbp.open_run(run.location)):
        means = seen.series("0", "eval_input_channel_mean")
        assert means.step.values.tolist() == [0, 1, 2]
        expected = [batch(step).double().mean(0).numpy() for step in range(3)]
        np.testing.assert_allclose(means, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("step", [-1, 1.0, True, "1", None])
def test_a_step_that_is_none_is_refused(watch: Watch, step: Any) -> None:
    run = watch(made(mlp))
    with pytest.raises(ValueError, match=r"at_step: step=.*; allowed: a whole"), run.at_step(step):
        pass


def test_an_evaluation_has_no_other_inside(watch: Watch) -> None:
    run = watch(made(mlp))
    with run.at_step(1), pytest.raises(RuntimeError, match="inside another"), run.at_step(2):
        pass


def test_while_another_thread_trains_the_model_is_not_evaluated(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    with training(run, model) as background:
        while background.n_steps < 2:
            pass
        with pytest.raises(RuntimeError, match="another thread trains"), run.at_step(0):
            pass
        run.backfill("0", "mine", 0, 1.0)  # from another thread than the training's
    assert run.series("0", "mine").values.tolist() == [1.0]


def test_a_series_may_be_backfilled_from_any_thread(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(5))
    thread = threading.Thread(
        target=run.backfill, args=("0", "weight_norm", [1, 3], [np.nan, -2.0])
    )
    thread.start()
    thread.join(30)
    run.backfill("2.bias", "rank", 2, 7, units="1", long_name="rank of something")
    series = run.series("0", "weight_norm")
    assert np.isnan(series[1])
    assert series[3] == -2
    assert series.sizes["step"] == 5
    assert run.series("2.bias", "rank").attrs["long_name"] == "rank of something"
    assert run.status().problem == ""


def test_a_closed_run_says_where_to_go(watch: Watch) -> None:
    run = watch(made(mlp))
    run.close()
    with pytest.raises(nbp.ClosedRunError):
        run.backfill("0", "weight_norm", 0, 0.0)
    with pytest.raises(nbp.ClosedRunError), run.at_step(0):
        pass
