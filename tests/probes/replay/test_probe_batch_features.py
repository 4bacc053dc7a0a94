"""Quantities of a user's own that run the model once more."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError, QuantityError
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.stat import Stat
from tests.models import Heads, Shared, floats, loss_of, made, mean_square, mlp
from tests.run.conftest import Watch

batch = floats(5, 4)


def step(model: nn.Module) -> None:
    loss_of(model(batch(0))).backward()
    SGD(model.parameters(), lr=0.1).step()


def along_gradient(landscape: Landscape) -> Tensor:
    """Curvature in the direction of the gradient."""
    g = landscape.gradient
    return g.dot(landscape.product(g)) / g.dot(g)


def test_a_function_of_the_landscape(watch: Watch) -> None:
    model = made(lambda: nn.Linear(4, 1, bias=False))
    run = watch(model, probes={"": [along_gradient]})
    run.probe_batch(batch(9), torch.ones(5, 1), nn.functional.mse_loss)
    x, w = batch(9).double().numpy(), model.weight.detach().double().numpy()[0]
    gradient, hessian = 2 * x.T @ (x @ w - 1) / 5, 2 * x.T @ x / 5
    step(model)
    expected = gradient @ hessian @ gradient / (gradient @ gradient)
    assert float(run.series("", "along_gradient")[0]) == pytest.approx(expected, rel=1e-4)


def test_what_was_derived_once_serves_all_quantities_of_a_place(watch: Watch) -> None:
    n_losses = 0

    def counted(output: Any, targets: Any) -> Tensor:
        nonlocal n_losses
        n_losses += 1
        return loss_of(output)

    model = made(mlp)
    run = watch(model, probes={"": ["sharpness", "hessian_trace", along_gradient]})
    run.probe_batch(batch(9), None, counted)
    n_losses = 0
    step(model)
    assert n_losses == 1


def test_nothing_is_kept_of_a_landscape(watch: Watch) -> None:
    seen: list[weakref.ref[Landscape]] = []

    def notes(landscape: Landscape) -> float:
        seen.append(weakref.ref(landscape))
        return float(landscape.product(landscape.gradient).sum())

    model = made(mlp)
    run = watch(model, probes={"": [notes, "alpha_step"]})
    run.probe_batch(batch(9), None, mean_square)
    step(model)
    assert len(seen) == 1
    assert seen[0]() is None


def probe_rms(probe_output_sumsq: Stat) -> Any:
    return probe_output_sumsq.rms


def probe_mean(probe_output: Tensor, weight: Tensor) -> Tensor:
    return probe_output.mean() + 0 * weight.sum()


def test_summaries_are_of_all_calls_and_functions_are_given_the_first(watch: Watch) -> None:
    model = made(Shared)
    run = watch(model, probes={"twice": [probe_rms, probe_mean]})
    run.probe_batch(batch(9), None, mean_square)
    with torch.no_grad():
        first = model.twice(batch(9))
        second = model.twice(first.relu())
    step(model)
    both = torch.cat([first, second]).double().numpy()
    expected = np.sqrt(np.mean(both**2))
    assert float(run.series("twice", "probe_rms")[0]) == pytest.approx(expected, rel=1e-6)
    mean = float(first.double().mean())
    assert float(run.series("twice", "probe_mean")[0]) == pytest.approx(mean, rel=1e-5)


def test_of_a_dict_the_first_tensor_is_taken(watch: Watch) -> None:
    model = made(Heads)
    run = watch(model, probes={"": ["feature_drift"]})
    run.probe_batch(batch(9), None, mean_square)
    step(model)
    assert run.series("", "feature_drift").values.tolist() == [0.0]


def test_what_cannot_be_is_refused_when_it_is_asked_for(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(NotApplicableError, match=r"'0\.bias' is a parameter"):
        run.attach("0.bias", "feature_drift")
    with pytest.raises(NotApplicableError, match="has none"):
        run.attach("1", "sharpness")  # a ReLU
    with pytest.raises(NotApplicableError, match="evaluation"):
        run.attach("", "sharpness", phase="eval")
    with pytest.raises(QuantityError, match="different moments"):

        @nbp.quantity(name="test_mixed")
        def mixed(output: Tensor, probe_output: Tensor) -> Tensor:
            return output.mean() - probe_output.mean()
