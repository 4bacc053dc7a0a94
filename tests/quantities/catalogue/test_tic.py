"""Noise of the gradient against curvature, of models where both are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

import notebook_probe as nbp
from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.catalogue.curvature import tic_trace
from notebook_probe.quantities.reduce.landscape import Landscape

Array: TypeAlias = npt.NDArray[np.float64]

N, WIDTH = 24, 5


def data(seed: int) -> tuple[Array, Array]:
    """Inputs, with a column of ones for the bias, and targets of 0 and 1."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=(N, WIDTH)), np.ones((N, 1))], axis=1)
    return x, rng.integers(0, 2, N).astype(float)


def of_squares(x: Array, y: Array, w: Array) -> float:
    """Least squares: the Hessian is ``2 E[x x']``, a gradient is ``2 r x``."""
    gradients = 2 * (x @ w - y)[:, None] * x
    return float(np.sum(gradients**2) / N / np.trace(2 * x.T @ x / N))


def of_logistic(x: Array, y: Array, w: Array) -> float:
    p = 1 / (1 + np.exp(-x @ w))
    gradients = (p - y)[:, None] * x
    return float(np.sum(gradients**2) / N / np.trace(x.T @ np.diag(p * (1 - p)) @ x / N))


def flat(outputs: Tensor, targets: Tensor, loss: Callable[..., Tensor], **how: Any) -> Tensor:
    return loss(outputs.squeeze(-1), targets, **how)


@pytest.mark.parametrize(
    ("loss", "exact"),
    [(mse_loss, of_squares), (binary_cross_entropy_with_logits, of_logistic)],
)
def test_what_is_recorded_is_the_ratio_of_the_traces(
    loss: Callable[..., Tensor], exact: Callable[[Array, Array, Array], float], tmp_path: Path
) -> None:
    x, y = data(0)
    torch.manual_seed(0)
    model = nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, targets, expected = torch.tensor(x[:, :-1]).float(), torch.tensor(y).float(), []
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["tic_trace"]}) as run:
        run.probe_batch(inputs, targets, lambda outputs, y: flat(outputs, y, loss))
        for _ in range(3):
            w = torch.cat([model.weight.flatten(), model.bias]).detach().double().numpy()
            expected.append(exact(x, y, w))
            optimizer.zero_grad()
            flat(model(inputs), targets, loss).backward()
            optimizer.step()
    np.testing.assert_allclose(run.series("", "tic_trace"), expected, rtol=1e-5)


def test_a_sum_over_samples_is_no_mean_and_says_so(tmp_path: Path) -> None:
    x, y = (torch.tensor(each).float() for each in data(1))
    model = nn.Linear(WIDTH + 1, 1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["tic_trace"]}) as run:
        run.probe_batch(x, y, lambda outputs, y: flat(outputs, y, mse_loss, reduction="sum"))
        flat(model(x), y, mse_loss).backward()
        run.step()
        [probe] = run.probes()
    assert "it must be their mean" in probe.note
    assert run.series("", "tic_trace").isnull().all()


class Named(nn.Module):
    """Takes inputs by name, one of them for all samples alike."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH + 1, 1)

    def forward(self, scale: Tensor, values: Tensor) -> Tensor:
        found: Tensor = self.layer(values) * scale
        return found


def test_inputs_by_name_and_targets_in_a_dict_are_taken_apart(tmp_path: Path) -> None:
    x, y = data(2)
    model = Named()
    given = {"scale": torch.tensor(2.0), "values": torch.tensor(x).float()}
    targets = {"y": torch.tensor(y).float()}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["tic_trace"]}) as run:
        run.probe_batch(given, targets, lambda outputs, y: flat(outputs, y["y"], mse_loss))
        model(**given).sum().backward()
        run.step()
    linear = model.layer
    w = linear.weight.detach().double().numpy()[0]
    x = np.concatenate([2 * x, np.full((N, 1), 2.0)], axis=1)
    w = np.append(w, linear.bias.detach().double().numpy())
    np.testing.assert_allclose(run.series("", "tic_trace"), [of_squares(x, y, w)], rtol=1e-5)


def landscape(x: Array, y: Array, w: Array, factor: float = 1.0) -> Landscape:
    """Least squares, by a user of the feature itself."""
    inputs, targets = torch.tensor(x), torch.tensor(y)

    def of(rows: slice) -> Callable[[Sequence[Tensor]], Tensor]:
        return lambda point: factor * (inputs[rows] @ point[0] - targets[rows]).square().mean()

    samples = [of(slice(i, i + 1)) for i in range(len(x))]
    return Landscape(of(slice(None)), [torch.tensor(w)], of_samples=lambda: samples)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.floats(0.01, 100))
def test_it_is_in_the_units_of_the_loss_whatever_order_samples_have(seed: int, by: float) -> None:
    x, y = data(seed)
    rng = np.random.default_rng(seed)
    w, order = rng.normal(size=WIDTH + 1), rng.permutation(N)
    found = float(tic_trace(landscape(x, y, w)))
    assert found == pytest.approx(of_squares(x, y, w), rel=1e-9)
    assert float(tic_trace(landscape(x[order], y[order], w, by))) == pytest.approx(by * found)


def test_downhill_on_the_whole_there_is_no_criterion() -> None:
    x, y = data(3)
    assert math.isnan(float(tic_trace(landscape(x, y, np.ones(WIDTH + 1), factor=-1.0))))


def test_a_landscape_whose_samples_nobody_knows_says_so() -> None:
    with pytest.raises(UnreadableError, match="samples of the batch are not known"):
        tic_trace(Landscape(lambda point: point[0].square().sum(), [torch.ones(2)]))
