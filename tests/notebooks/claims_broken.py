"""What notebooks of broken trainings must have found, read from the records that they leave.

Each leaves two runs that differ in one line, called broken and healthy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp

__all__ = ["CLAIMS_BROKEN"]


def recorded(folder: Path) -> dict[str, Any]:
    """The runs of a notebook by their names."""
    return {run.name: run for run in map(nbp.open_run, folder.glob("runs/*.zarr"))}


def rules(run: Any) -> list[str]:
    """The rules that have spoken, each once, by the step of the first alert."""
    return list(dict.fromkeys(alert.rule for alert in run.alerts))


def evaluated_in_training_mode(folder: Path) -> None:
    """Dropout changes what it is given by the root of p / (1 - p) in training, else by nothing."""
    runs = recorded(folder)
    for name, expected in (("broken", math.sqrt(0.3 / 0.7)), ("healthy", 0.0)):
        for layer in ("dropout1", "dropout2"):
            change = runs[name].series(layer, "eval_residual_change").dropna("step")
            assert change.values == pytest.approx([expected] * 10, abs=0.06)
    [alert] = runs["broken"].alerts
    assert (alert.rule, alert.modules) == ("evaluated_in_training_mode", ("dropout1", "dropout2"))
    assert rules(runs["healthy"]) == []


def label_noise(folder: Path) -> None:
    """While wrong labels are learned by heart the first layer's gradient grows (1706.05394)."""
    runs = recorded(folder)
    growth = {}
    for name, run in runs.items():
        norm = run.series("0", "grad_norm").values
        growth[name] = norm[-110:].mean() / norm[110:220].mean()
        assert rules(run) == []
    assert growth["broken"] > 1.3
    assert growth["healthy"] < growth["broken"] / 1.5
    worst = runs["broken"].series("", "worst_samples").values
    assert worst.shape == (792, 8)
    assert 0 <= worst.min() < worst.max() < 1400


def collapsed_attention_head(folder: Path) -> None:
    """Scores above 50 leave a head one patch to look at; normalised ones are 4 at most."""
    runs = recorded(folder)
    for module in ("blocks.0.attention", "blocks.1.attention"):
        wide = {name: run.series(module, "attn_entropy_share") for name, run in runs.items()}
        assert wide["broken"][-1] < 0.1 < 0.2 < wide["healthy"][-1]
        assert runs["broken"].series(module, "attn_max_logit").max() > 50
        assert runs["healthy"].series(module, "attn_max_logit").max() <= 4.01
    assert {"attention_collapse", "attention_logit_large"} <= {*rules(runs["broken"])}
    assert rules(runs["healthy"]) == []


def lora_that_does_not_train(folder: Path) -> None:
    """Adapters that no optimizer holds are told of after 20 steps; held, they move most."""
    runs = recorded(folder)
    [alert] = runs["broken"].alerts
    assert (alert.rule, alert.step) == ("untrained_adapter", 20)
    assert alert.modules == ("hidden1", "hidden2")
    moved = {name: run.data.update_ratio.dropna("module", how="all") for name, run in runs.items()}
    assert moved["broken"].module.values.tolist() == ["head"]
    assert moved["healthy"].module.values.tolist() == ["hidden1", "hidden2", "head"]
    losses = {name: run.series("", "backward_loss")[-20:].mean() for name, run in runs.items()}
    assert losses["healthy"] < 0.5 * losses["broken"]
    assert rules(runs["healthy"]) == []


def discriminator_wins(folder: Path) -> None:
    """A hundredth of the rate, and the generator is told apart nearly always (1701.04862)."""
    runs = recorded(folder)
    late = {
        (name, loss): run.series("", loss).dropna("step").values[-50:].mean()
        for name, run in runs.items()
        for loss in ("loss_d", "loss_g")
    }
    assert late["broken", "loss_d"] < 0.05 < 4 < late["broken", "loss_g"]
    assert late["healthy", "loss_d"] > 0.5
    assert late["healthy", "loss_g"] < 3
    assert rules(runs["broken"])[0] == "one_sided_gan"
    assert rules(runs["healthy"]) == []


def overflow_in_half_precision(folder: Path) -> None:
    """float16 has less than two bits left long before the first NaN, bfloat16 a hundred."""
    runs = recorded(folder)
    near, *_ = runs["broken"].alerts.of("overflow_near")
    nan, *_ = runs["broken"].alerts.of("nonfinite_output")
    assert near.step + 10 < nan.step
    losses = runs["broken"].series("", "backward_loss").values
    assert np.isfinite(losses[: nan.step]).all()
    assert np.isnan(losses[nan.step :]).all()
    assert runs["healthy"].data.range_headroom_bits.min() > 100
    assert {*rules(runs["healthy"])} == {"large_outputs"}


def dying_relu(folder: Path) -> None:
    """Bytes as inputs: layers die at once, and the loss stays that of a guess (1903.06733)."""
    runs = recorded(folder)
    dead = {name: run.data.dead_fraction.isel(step=-10) for name, run in runs.items()}
    assert dead["broken"].sel(module="1") == 1
    assert dead["healthy"].max() < 0.2
    losses = {name: run.series("", "backward_loss")[-20:].mean() for name, run in runs.items()}
    assert losses["broken"] == pytest.approx(math.log(10), abs=0.02)
    assert losses["healthy"] < 0.2
    assert {"large_outputs", "dead_units", "silent_inputs", "vanishing_gradient"} <= {
        *rules(runs["broken"])
    }
    assert rules(runs["healthy"]) == []


def vanishing_sigmoid(folder: Path) -> None:
    """A layer leaves of a gradient no more than the sigmoid's slope, a quarter at most."""
    runs = recorded(folder)
    factors = {}
    for name, run in runs.items():
        sizes = run.data.grad_rms.sel(step=0).dropna("module").values[:8]
        factors[name] = np.exp(-np.polyfit(np.arange(8), np.log(sizes), 1)[0])
    assert 0.1 < factors["broken"] < 0.25
    assert 0.5 < factors["healthy"] < 2
    losses = {name: run.series("", "backward_loss")[-20:].mean() for name, run in runs.items()}
    assert losses["broken"] == pytest.approx(math.log(10), abs=0.05)
    assert losses["healthy"] < 0.5
    assert {"vanishing_with_depth", "vanishing_gradient"} <= {*rules(runs["broken"])}
    assert rules(runs["healthy"]) == []


def rate_too_high_and_too_low(folder: Path) -> None:
    """The same loss at the end of steps beyond the weights, and of steps of a ten-millionth."""
    runs = recorded(folder)
    largest = {name: float(run.data.update_ratio.max()) for name, run in runs.items()}
    assert largest["too low"] < 1e-6 < 1e-3 < largest["healthy"] < 0.3
    assert largest["too high"] > 1
    losses = {name: run.series("", "backward_loss")[-20:].mean() for name, run in runs.items()}
    for name in ("too high", "too low"):
        assert losses[name] == pytest.approx(math.log(10), abs=0.1)
    assert losses["healthy"] < 0.6
    assert {"lr_high", "early_divergence"} <= {*rules(runs["too high"])}
    assert rules(runs["too low"]) == ["lr_low", "hardly_trains"]
    assert rules(runs["healthy"]) == []


def loss_summed_while_accumulating(folder: Path) -> None:
    """Sixteen means that are added are sixteen times the gradient of the whole batch."""
    runs = recorded(folder)
    norms = {
        name: run.data.grad_norm.sel(step=0).dropna("module").values for name, run in runs.items()
    }
    np.testing.assert_allclose(norms["broken"], 16 * norms["whole"], rtol=1e-3)
    np.testing.assert_allclose(norms["healthy"], norms["whole"], rtol=1e-3)
    assert rules(runs["broken"]) == ["early_divergence"]
    assert rules(runs["healthy"]) == []


def batchnorm_in_tiny_batches(folder: Path) -> None:
    """BatchNorm leaves of two numbers which one is larger, and of a loss most as it was."""
    runs = recorded(folder)
    losses = {name: run.series("", "backward_loss")[-100:].mean() for name, run in runs.items()}
    assert losses["broken"] > 2 * losses["healthy"]
    assert "batchnorm_mismatch" in rules(runs["broken"])
    assert "batchnorm_mismatch" not in rules(runs["healthy"])
    assert runs["broken"].series("1", "bn_mean_tid")[10:].mean() > 0.5


def exploding_rnn(folder: Path) -> None:
    """The gradient of 32 steps in time ends a training at once; cut to 1, it learns (1211.5063)."""
    runs = recorded(folder)
    assert runs["broken"].series("cell", "grad_norm")[0] > 10
    assert np.isnan(runs["broken"].series("", "backward_loss")[-1])
    assert {"nonfinite_loss", "nonfinite_gradient"} <= {*rules(runs["broken"])}
    assert runs["healthy"].series("cell", "grad_norm").max() < 1.001
    assert runs["healthy"].series("", "backward_loss")[-30:].mean() < 2
    assert rules(runs["healthy"]) == []


CLAIMS_BROKEN: dict[str, Callable[[Path], None]] = {
    "batchnorm_in_tiny_batches": batchnorm_in_tiny_batches,
    "collapsed_attention_head": collapsed_attention_head,
    "discriminator_wins": discriminator_wins,
    "dying_relu": dying_relu,
    "evaluated_in_training_mode": evaluated_in_training_mode,
    "label_noise": label_noise,
    "exploding_rnn": exploding_rnn,
    "lora_that_does_not_train": lora_that_does_not_train,
    "loss_summed_while_accumulating": loss_summed_while_accumulating,
    "overflow_in_half_precision": overflow_in_half_precision,
    "rate_too_high_and_too_low": rate_too_high_and_too_low,
    "vanishing_sigmoid": vanishing_sigmoid,
}
"""By the name of the notebook."""
