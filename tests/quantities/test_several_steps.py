"""Quantities of several steps against numpy: running statistics, dead units, what has changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.dead_units import dormant_fraction, magnitudes
from notebook_probe.quantities.reduce.peaks import Peaks, peaks

BATCHES = [torch.randn(6, 3, 4, 4, generator=torch.Generator().manual_seed(i)) for i in range(5)]
DUE = "linear(2,0)"
WINDOWS = {0: [0], 2: [1, 2], 4: [3, 4]}


def normed(momentum: float | None = 0.1) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, momentum=momentum), nn.ReLU(), nn.Conv2d(4, 2, 4)
    )


def train(model: nn.Module, after: Callable[[], None] = lambda: None, lr: float = 0.05) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x in BATCHES:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        after()
        optimizer.step()


def recorded(path: Path, place: str, names: list[str], due: str = DUE) -> dict[str, Any]:
    model = normed()
    with nbp.watch(
        model, store=path / "run.zarr", probes={place: [[n, due] for n in names]}
    ) as run:
        train(model)
        assert not run.status().errors
    return {name: run.series(place, name) for name in names}


def wide(tensor: Tensor) -> Any:
    return tensor.detach().double().numpy().copy()


def test_batchnorm_s_discrepancies_are_those_of_the_paper(tmp_path: Path) -> None:
    model, inputs, running = normed(), [], []
    model[1].register_forward_pre_hook(lambda m, args: inputs.append(wide(args[0])))
    norm: Any = model[1]
    train(model, lambda: running.append((wide(norm.running_mean), wide(norm.running_var))))
    rows = [np.moveaxis(x, 1, -1).reshape(-1, 4) for x in inputs]
    found = recorded(tmp_path, "1", ["bn_mean_tid", "bn_var_tid"])
    for step, steps in WINDOWS.items():
        mean, deviation = running[step][0], np.sqrt(running[step][1])
        scale = np.linalg.norm(deviation) + 1e-8
        means = np.mean([np.linalg.norm(rows[k].mean(0) - mean) / scale for k in steps])
        spreads = np.mean(
            [np.linalg.norm(rows[k].std(0, ddof=1) - deviation) / scale for k in steps]
        )
        assert float(found["bn_mean_tid"].sel(step=step)) == pytest.approx(means, rel=1e-5)
        assert float(found["bn_var_tid"].sel(step=step)) == pytest.approx(spreads, rel=1e-5)


def test_a_frozen_norm_uses_its_statistics_in_training_too_so_there_is_no_discrepancy(
    tmp_path: Path,
) -> None:
    model = normed()
    model[1].eval()
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": ["bn_mean_tid"]}) as run:
        train(model)
        assert run.status().probes[0].n_errors == 0
    assert "bn_mean_tid" not in run.data or not len(run.series("1", "bn_mean_tid"))


@pytest.mark.parametrize("kind", [nn.Conv2d(1, 1, 1), nn.BatchNorm1d(3, track_running_stats=False)])
def test_what_keeps_no_running_statistics_is_refused(kind: nn.Module, tmp_path: Path) -> None:
    model = nn.Sequential(kind)
    with (
        nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run,
        pytest.raises(
            nbp.NotApplicableError, match=f"{type(kind).__name__}.* keeps no running mean"
        ),
    ):
        run.attach("0", "bn_mean_tid")


def test_a_unit_is_dead_that_was_silent_in_every_step(tmp_path: Path) -> None:
    model, outputs = normed(), []
    model[2].register_forward_hook(lambda m, args, y: outputs.append(wide(y)))
    train(model, lr=5.0)
    largest = [np.moveaxis(y, 1, -1).reshape(-1, 4).max(0) for y in outputs]
    twin = normed()
    probes: Any = {"2": [["dead_fraction", DUE]]}
    with nbp.watch(twin, store=tmp_path / "run.zarr", probes=probes) as run:
        train(twin, lr=5.0)
    for step, steps in WINDOWS.items():
        want = np.mean(np.max([largest[k] for k in steps], axis=0) <= 0)
        assert float(run.series("2", "dead_fraction").sel(step=step)) == pytest.approx(want)


@pytest.mark.parametrize(
    ("rows", "dead", "dormant"),
    [
        ([[1.0, 0.0, -2.0], [3.0, 0.0, -1.0]], 2 / 3, 1 / 3),
        ([[0.0, 0.0], [0.0, 0.0]], 1.0, math.nan),
        ([[100.0, 1.0]], 0.0, 0.5),
    ],
)
def test_dead_and_dormant_are_what_a_hand_counts(
    rows: list[list[float]], dead: float, dormant: float
) -> None:
    module = nn.Linear(2, len(rows[0]))
    window = as_quantity("dead_fraction")()
    window.reset()
    window.update(peaks(torch.tensor(rows), module))
    assert float(window.compute()) == pytest.approx(dead)
    found = dormant_fraction(magnitudes(torch.tensor(rows), module))
    np.testing.assert_allclose(float(found), dormant)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "axis", "module"),
    [
        ((6, 5), 1, nn.Linear(2, 5)),
        ((5,), 0, nn.Linear(2, 5)),
        ((2, 3, 5), 2, nn.Linear(2, 5)),
        ((2, 5, 3, 4), 1, nn.Conv2d(2, 5, 1)),
        ((5, 3, 4), 0, nn.Conv2d(2, 5, 1)),
    ],
)
def test_channels_reach_as_far_and_weigh_as_much_as_numpy_says(
    shape: tuple[int, ...], axis: int, module: nn.Module, dtype: torch.dtype
) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    rows = np.moveaxis(values.double().numpy(), axis, -1).reshape(-1, 5)
    halves = (values,) if axis == 0 else values.chunk(2)
    found = reduce(Peaks.merge, (peaks(half, module) for half in halves))
    np.testing.assert_array_equal(found.largest, rows.max(0))
    np.testing.assert_array_equal(found.smallest, rows.min(0))
    np.testing.assert_array_equal(found.abs_max, abs(rows).max(0))
    assert found.n_rows == len(rows)
    sums = magnitudes(values, module).sums
    np.testing.assert_allclose(sums, abs(rows).sum(0), rtol=1e-14)


def test_the_gradient_before_is_kept_whatever_becomes_of_its_layout() -> None:
    window = as_quantity("grad_cosine")()
    window.reset()
    generator = torch.Generator().manual_seed(0)
    before = None
    for layout in ("ij", "ij", "ji", "ji", "ij", "half", "ij", "ij"):
        grad = torch.randn(3, 4, generator=generator)
        grad = {"ij": grad, "ji": grad.T.contiguous().T, "half": grad.half()}[layout]
        window.update(grad)
        now = grad.double().numpy().ravel()
        if before is None:
            assert window.compute() is None
        else:
            assert float(window.compute()) == pytest.approx(cosine(before, now), rel=1e-6)
        before = now.copy()
        grad.zero_()  # as an optimizer's zero_grad(set_to_none=False) does


def test_a_unit_of_a_linear_layer_is_dead_that_stays_below_minus_two() -> None:
    window = as_quantity("LinearDeadNeuronNum")()
    window.reset()
    rows = [[-3.0, -1.0, -2.0, -1.9], [-2.5, -4.0, -2.5, -9.0]]
    window.update(peaks(torch.tensor(rows), nn.Linear(2, 4)))
    assert float(window.compute()) == 2 / 4, "the first and the third"
    window.update(peaks(torch.tensor([[0.0, -9.0, -9.0, -9.0]]), nn.Linear(2, 4)))
    assert float(window.compute()) == 1 / 4, "the first was seen above it since"


def test_a_unit_may_be_called_dead_below_another_threshold() -> None:
    kind: Any = as_quantity("dead_fraction").function
    below = type("DeadBelowMinusTwo", (kind,), {"threshold": -2.0})
    quantity = nbp.window_quantity(below, name="test_dead_below_minus_two")
    window = quantity()
    window.reset()
    window.update(peaks(torch.tensor([[-3.0, -1.0], [-2.0, -4.0]]), nn.Linear(2, 2)))
    assert float(window.compute()) == 0.5


def test_of_nothing_nothing_is_told() -> None:
    found = magnitudes(torch.zeros(0, 3), nn.Linear(2, 3))
    assert math.isnan(float(dormant_fraction(found)))
    for name in ("dead_fraction", "bn_mean_tid", "bn_var_tid", "sign_flips", "grad_cosine"):
        window = as_quantity(name)()
        window.reset()
        assert window.compute() is None, name


@pytest.fixture(scope="module")
def steps() -> list[tuple[Any, Any]]:
    """Weight and gradient of the last layer, step by step, of an unwatched twin."""
    model, found = normed(), list[tuple[Any, Any]]()
    last: Any = model[3]
    train(model, lambda: found.append((wide(last.weight), wide(last.weight.grad))))
    return found


def cosine(one: Any, other: Any) -> float:
    return float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))


PAIRS: dict[str, Callable[[Any, Any], float]] = {
    "sign_flip_count": lambda one, other: float((one[0] * other[0] < 0).sum()),
    "sign_flips": lambda one, other: float((one[0] * other[0] < 0).mean()),
    "grad_cosine": lambda one, other: cosine(one[1], other[1]),
}
SINCE: dict[str, Callable[[Any, Any], float]] = {
    "distance_from_init": lambda one, other: float(np.linalg.norm(one[0] - other[0])),
    "layer_rotation": lambda one, other: 1 - cosine(one[0], other[0]),
}


@pytest.mark.parametrize("due", ["every(1)", DUE])
def test_changes_are_from_the_step_before_or_from_the_first(
    due: str, steps: list[tuple[Any, Any]], tmp_path: Path
) -> None:
    found = recorded(tmp_path, "3", [*PAIRS, *SINCE], due)
    for name, of in PAIRS.items():
        series = found[name]
        assert 0 not in series.step, "before the first step there is none"
        want = [of(steps[step - 1], steps[step]) for step in series.step.values]
        np.testing.assert_allclose(series.values, want, rtol=1e-5, err_msg=name)
    for name, of in SINCE.items():
        series = found[name]
        want = [of(steps[0], steps[step]) for step in series.step.values]
        assert 0 in series.step
        np.testing.assert_allclose(series.values, want, rtol=1e-4, atol=1e-7, err_msg=name)
