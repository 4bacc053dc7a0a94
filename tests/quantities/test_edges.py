"""On the edge of a definition: zeros, several steps, what is written into later."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import quantities
from notebook_probe.quantities.catalogue.step_time import BatchRows
from notebook_probe.quantities.reduce.spectrum import spectrum
from tests.models import made, sgd
from tests.quantities.evaluated import evaluate


def value(name: str, *tensors: Tensor, module: nn.Module | None = None) -> Any:
    found = evaluate(quantities[name], *tensors, module=module)
    return None if found is None else float(found)


def test_what_is_not_finite_is_a_share_of_all_elements_of_all_calls() -> None:
    broken = torch.tensor([[1.0, math.nan, math.inf, 2.0], [0.0, 1.0, -math.inf, 3.0]])
    assert value("nonfinite_fraction", broken) == 3 / 8
    assert value("nonfinite_fraction", broken, torch.ones(4, 2)) == 3 / 16


def test_a_unit_that_was_above_zero_in_any_step_is_alive() -> None:
    first = torch.tensor([[1.0, -1.0, -1.0, 0.0]])
    second = torch.tensor([[-1.0, 1.0, -2.0, 0.0]])
    layer = nn.Linear(4, 4)
    assert value("dead_fraction", first, module=layer) == 3 / 4
    assert value("dead_fraction", first, second, module=layer) == 2 / 4


def test_a_layer_whose_width_changes_is_judged_by_its_newest_width() -> None:
    wide, narrow = torch.tensor([[1.0, 1.0, -1.0]]), torch.tensor([[-1.0, 1.0]])
    assert value("dead_fraction", wide, narrow, module=nn.Linear(4, 4)) == 1 / 2


def test_a_weight_of_zero_has_no_sign_to_change() -> None:
    before = torch.tensor([1.0, 0.0, 0.0, -1.0, 2.0])
    after = torch.tensor([-1.0, 0.0, 3.0, -2.0, 0.0])
    assert value("sign_flip_count", before, after) == 1
    assert value("sign_flips", before, after) == 1 / 5


def test_no_step_has_a_size_relative_to_a_weight_of_zero_and_the_status_says_so(
    tmp_path: Path,
) -> None:
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["update_ratio"]})
    optimizer = sgd(model, lr=1.0)
    model(torch.tensor([[3.0, 4.0]])).sum().backward()
    optimizer.step()
    run.controls.settle()
    [status] = run.probes()
    assert status.note == "all of the weight is zero, so that no step has a size relative to it"
    model(torch.tensor([[3.0, 4.0]])).sum().backward()  # the gradients add up: the step is doubled
    optimizer.step()
    run.close()
    ratio = run.series("", "update_ratio").dropna("step")
    assert dict(zip(ratio.step.values, ratio.values, strict=True)) == {1: 2.0}


class Later(nn.Module):
    """What a layer returned is written into afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x)
        return y.mul_(100.0)


def test_quantiles_are_of_the_output_as_it_was_returned(tmp_path: Path) -> None:
    model = made(Later)
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = np.quantile(model.linear(x).double().numpy(), [0.01, 0.5, 0.99])
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes={"linear": ["output_quantiles"]})
    model(x).sum().backward()
    sgd(model).step()
    run.close()
    found = run.series("linear", "output_quantiles")[0].values
    np.testing.assert_allclose(found[[0, 3, 6]], wanted, rtol=1e-6)


def test_directions_are_counted_over_the_outputs_of_all_steps() -> None:
    first, second = torch.zeros(20, 4), torch.zeros(20, 4)
    first[:, 0], second[:, 1] = torch.linspace(-1, 1, 20), torch.linspace(-1, 1, 20)
    layer = nn.Linear(4, 4)
    assert value("saturation", first, module=layer) == pytest.approx(1 / 4)
    assert value("saturation", first, second, module=layer) == pytest.approx(2 / 4)


BROKEN = torch.tensor([[1.0, math.nan, math.inf, 2.0], [0.0, 1.0, -math.inf, 3.0]])
LOST = torch.tensor([2.0**-24, 2.0**-24 * 0.99, -(2.0**-25), 2.0**-30, 0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("name", "tensor", "share"),
    [
        *(
            (f"{of}_nonfinite_fraction", BROKEN, 3 / 8)
            for of in ("input", "output_grad", "grad", "weight")
        ),
        ("output_grad_underflow_fraction", LOST, 3 / 8),
        ("underflow_fraction", LOST.half() / 2**5, 0.0),
        ("underflow_fraction", torch.tensor([2.0**-14, 2.0**-15, 0.0, 1.0]).half(), 1 / 4),
    ],
)
def test_a_share_is_counted_one_by_one(name: str, tensor: Tensor, share: float) -> None:
    assert value(name, tensor) == share


@pytest.mark.parametrize("width", [24, 25, 100])
@pytest.mark.parametrize("percent", [20, 50, 80])
def test_a_percentage_of_the_directions_is_counted_to_the_single_one(
    percent: int, width: int
) -> None:
    x = np.random.default_rng(width).standard_normal((3 * width, width))
    found = spectrum(torch.tensor(x), nn.Linear(width, 1))
    every = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    condition = quantities[f"input_cov_condition_{percent}"](found)
    assert float(condition) == pytest.approx(
        every[0] / (every[math.floor(width * percent / 100)] + 1e-7), rel=1e-9
    )
    top = quantities[f"input_cov_top_eigs_{percent}"](found)
    expected = every[: math.ceil(width * percent / 100)][::-1]
    np.testing.assert_allclose(top.numpy(), expected, rtol=1e-9)


def test_times_are_what_was_told() -> None:
    steps: dict[str, tuple[list[tuple[Any, ...]], float]] = {
        "step_time": ([(0.1,), (0.4,), (0.2,)], 0.2),
        "data_wait_share": ([(0.05, 0.2), (0.05, 0.3)], 0.2),
        "samples_per_second": ([(BatchRows(32), 0.5), (BatchRows(16), 0.25)], 64.0),
        "peak_memory": ([(5e8,), (7e8,), (6e8,)], 7e8),
        "device_memory": ([(5e8,), (7e8,), (6e8,)], 6e8),
        "device_utilization": ([(0.5,), (0.7,)], 0.7),
        "device_power": ([(310.0,), (250.5,)], 250.5),
    }
    for name, (told, expected) in steps.items():
        window = quantities[name]()
        for _ in range(2):  # what was before a reset does not count
            window.reset()
            assert window.compute() is None
            for values in told:
                window.update(*values)
            assert window.compute() == pytest.approx(expected, rel=1e-12), name
