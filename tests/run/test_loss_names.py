"""The loss of a step is known by each of its usual names, to quantities and to alerts."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.record.format.loss_names import BACKWARD_LOSS, LOSS_NAMES
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
QUANTITIES = ["loss_ema", "loss_spike_score", "train_eval_gap"]


def logging(watch: Watch, steps: Iterable[Mapping[str, float]]) -> nbp.Run:
    """A run of a loop that logs these numbers after its steps; ``val_loss`` of the state."""
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes={"": QUANTITIES})
    for step, numbers in enumerate(steps):
        train_step(model, optimizer, batch(step))
        run.log({name: value for name, value in numbers.items() if name != "val_loss"})
        if "val_loss" in numbers:
            run.log(val_loss=numbers["val_loss"], loss=100.0, phase="eval")
    run.controls.settle()
    return run


@pytest.mark.parametrize("name", [name for name in LOSS_NAMES if name != BACKWARD_LOSS])
def test_quantities_and_alerts_read_the_loss_by_each_of_its_names(watch: Watch, name: str) -> None:
    losses = [1.0 + 0.01 * (step % 3) for step in range(20)] + [50.0, 100.0, math.nan]
    run = logging(watch, [{"lr": 0.1, name: loss, "accuracy": 0.5} for loss in losses])
    means = [np.mean(losses[: step + 1]) for step in range(22)]
    np.testing.assert_allclose(run.series("", "loss_ema")[:22], means, rtol=1e-6)
    assert run.series("", "loss_spike_score").sel(step=20) > 100
    found = {alert.rule: alert for alert in run.alerts}
    assert {"diverging_loss", "nonfinite_loss", "loss_spike"} <= set(found)
    assert found["nonfinite_loss"].quantities == (name,)
    assert (found["nonfinite_loss"].step, found["diverging_loss"].step) == (22, 21)
    recorded = set(map(str, run.data.data_vars)) - {*QUANTITIES, "calls"}
    assert recorded == {"lr", name, "accuracy"}, "it is recorded under its own name alone"


def test_the_gap_to_an_evaluation_is_of_the_steps_losses(watch: Watch) -> None:
    run = logging(watch, [{"train/loss": 1.0}, {"train/loss": 2.0, "val_loss": 4.0}, {}])
    assert run.series("", "train_eval_gap").values.tolist() == [2.5]
    assert run.series("", "loss_ema").values.tolist()[:2] == [1.0, 1.5]


def test_the_first_of_the_names_that_are_logged_counts_all_the_time(watch: Watch) -> None:
    """Some trainers log the mean of the whole training under another name in the end."""
    run = logging(watch, [*[{"loss": 1.0}] * 9, {"train_loss": math.nan}, {}])
    assert set(run.series("", "loss_ema").values.tolist()) == {1.0}
    assert not run.alerts.of("nonfinite_loss")


@pytest.mark.parametrize("names", [("loss_d", "loss_g"), ("d_loss", "g_loss")])
def test_the_losses_of_two_adversaries_are_no_loss_that_should_fall(
    watch: Watch, names: tuple[str, str]
) -> None:
    run = logging(watch, [dict(zip(names, (1.4, 0.7), strict=True))] * 5)
    assert run.series("", "backward_loss").size == 5
    assert run.rules.states()["loss_spike"] == "waits for loss"
    assert run.rules.states()["one_sided_gan"] == "on"


def test_the_loss_beside_one_of_a_discriminator_is_one(watch: Watch) -> None:
    run = logging(watch, [{"loss_d": 1.4}] * 5)
    assert run.rules.states()["loss_spike"] == "on"
