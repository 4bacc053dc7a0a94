"""What optimizers and gradients do, of unusual parameters: small types, complex, sparse, empty."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp

OF_ADAM = ["adam_update_rms", "moment_ratio", "effective_lr_quantiles", "grad_below_eps_fraction"]
OF_ALL = ["lr", "weight_decay", "momentum", "log_step_size", "grad_depth_slope", "clip_coefficient"]
OF_MICRO = [
    *("gradient_noise_scale", "norm_test", "inner_product_test", "orthogonality_test"),
    *("gsnr", "early_stopping_evidence", "stiffness"),
]
CHANGES = ["update_cosine", "grad_cosine", "layer_rotation", "distance_from_init", "sign_flips"]
NAMES = [*OF_ADAM, *OF_ALL, *OF_MICRO, *CHANGES]


class Holder(nn.Module):
    """One parameter, used as it is."""

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(value.clone())

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).abs().float().square().sum()


def steps(
    folder: Path, model: nn.Module, given: Callable[[int], Tensor], sparse: bool = False
) -> Any:
    """Three accumulated steps of Adam; what was recorded of the model in the last one."""
    kind: Any = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=0.01, eps=1e-8)
    with nbp.watch(model, store=folder / "run.zarr", probes={"": NAMES}) as run:
        for step in range(3):
            optimizer.zero_grad()
            for micro in range(2):
                model(given(2 * step + micro)).sum().backward()
            optimizer.step()
        errors = {probe.quantity: probe.error for probe in run.probes() if probe.error}
        assert not errors
    return run.data.isel(step=-1).sel(module="(root)").load()


def ramp(step: int) -> Tensor:
    return torch.linspace(0.5 + step, 2.0, 12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_small_and_large_types_are_measured_in_wide_ones(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    found = steps(tmp_path, Holder(torch.linspace(0.1, 1, 12, dtype=dtype)), ramp)
    missing = {name for name in NAMES if not np.isfinite(found[name]).all()}
    assert missing <= {"grad_depth_slope"}, "of one layer there is no slope"
    assert float(found.lr) == pytest.approx(0.01)
    assert 0.3 < float(found.update_cosine) <= 1


def test_complex_parameters_count_by_their_real_and_imaginary_parts(tmp_path: Path) -> None:
    """As Adam itself takes them: the twin holds them as two real numbers."""
    value = torch.complex(torch.linspace(0.1, 1, 12), torch.linspace(1, 0.3, 12))
    one = steps(tmp_path / "complex", Holder(value), ramp)
    pairs = Holder(torch.view_as_real(value).clone())
    other = steps(tmp_path / "real", pairs, lambda step: ramp(step)[:, None])
    for name in (*OF_ADAM, *CHANGES, "log_step_size", *OF_MICRO):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-4, err_msg=name)


def test_sparse_gradients_count_as_dense_ones(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Embedding(7, 3, sparse=True)
    found = steps(tmp_path, model, lambda step: torch.tensor([1, 2, 2, step]), sparse=True)
    assert np.isfinite(found.adam_update_rms)
    assert float(found.update_cosine) > 0
    assert float(found.grad_below_eps_fraction) >= 2 / 7


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_gradients_that_are_not_finite_give_no_invented_number(bad: float, tmp_path: Path) -> None:
    """And no exception: NaN, or infinity for a size."""
    found = steps(
        tmp_path, Holder(torch.linspace(0.1, 1, 12)), lambda step: ramp(step) * (bad if step else 1)
    )
    for name in ("update_cosine", "adam_update_rms", "moment_ratio", "norm_test", "stiffness"):
        assert not np.isfinite(found[name]), name
    assert float(found.lr) == pytest.approx(0.01)


def test_an_empty_parameter_leaves_gaps(tmp_path: Path) -> None:
    found = steps(tmp_path, Holder(torch.zeros(0)), lambda step: torch.zeros(0))
    assert all(np.isnan(found[name]).all() for name in (*OF_ADAM, *OF_MICRO, "update_cosine"))
