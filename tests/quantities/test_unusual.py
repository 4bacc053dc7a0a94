"""Every quantity of unusual numbers: the documented value, a gap, never an invented one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.quantities.evaluated import evaluate, of_tensors

QUANTITIES = of_tensors()

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
X[3, 1] = 1.5


def with_one(value: float) -> Tensor:
    changed = X.clone()
    changed[3, 1] = value
    return changed


def module_for(name: str) -> nn.Module:
    """One that has what the quantity needs."""
    special = {"saturated_fraction": nn.Tanh(), "bn_mean_tid": nn.BatchNorm1d(4)}
    return special.get(name) or (nn.BatchNorm1d(4) if name.startswith("bn_") else nn.Linear(4, 4))


def value(name: str, *tensors: Tensor) -> Any:
    return evaluate(QUANTITIES[name], *tensors, module=module_for(name))


def is_missing(found: Any) -> bool:
    return found is None or bool(np.isnan(found).all())


OF_THE_TYPE = {
    *("range_headroom_bits", "output_grad_headroom_bits", "underflow_fraction", "output_dtype"),
}
"""Of the type itself, which is what they are about."""

OF_THE_PARTS = {
    *("distance_from_init", "layer_rotation", "sign_flips", "sign_flip_count"),
    *("grad_cosine", "update_cosine"),
}
"""A complex number is two numbers for them, for all others its modulus."""

TYPES: dict[str, Callable[[Tensor], Tensor]] = {
    "bfloat16": lambda x: x.bfloat16(),
    "float16": lambda x: x.half(),
    "float8": lambda x: x.to(torch.float8_e4m3fn),
    "float64": lambda x: x.double() * 1e100,
    "int32": lambda x: (3 * x).int(),
    "bool": lambda x: x > 0,
    "complex": lambda x: torch.complex(x, 2 * x),
    "sparse": lambda x: x.relu().to_sparse(),
    "strided": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "huge": lambda x: x * 1e38,
    "denormal": lambda x: x * 1e-39,
}


def plain(tensor: Tensor) -> Tensor:
    """The same numbers in float64, of complex ones the moduli."""
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    return dense.abs().double() if dense.is_complex() else dense.double()


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_of_any_type_count_as_what_they_are(kind: str) -> None:
    given = [TYPES[kind](x) for x in (X, 0.5 * X)]
    for name in QUANTITIES:
        if name in OF_THE_TYPE or (kind == "complex" and name in OF_THE_PARTS):
            continue
        found, want = value(name, *given), value(name, *map(plain, given))
        assert (found is None) == (want is None), name
        if want is not None:
            np.testing.assert_allclose(found, want, rtol=3e-5, err_msg=name)


@pytest.mark.parametrize("name", sorted(OF_THE_PARTS & QUANTITIES.keys()))
def test_a_complex_number_has_two_directions(name: str) -> None:
    given = torch.complex(X, X.flip(0))
    steps = (given, given * torch.complex(torch.tensor(0.6), torch.tensor(0.8)))
    found, want = value(name, *steps), value(name, *map(torch.view_as_real, steps))
    np.testing.assert_allclose(found, want, rtol=1e-5)


COUNT = {
    *("zero_fraction", "grad_zero_fraction", "saturated_fraction", "sign_flips", "sign_flip_count"),
    *("underflow_fraction", "output_grad_underflow_fraction", "grad_underflow_fraction"),
    *("weight_min", "weight_max", "weight_sum"),
    *("duplicate_fraction", "router_load_entropy", "router_load", "router_max_violation"),
    *("dead_expert_fraction", "output_dtype", "batch_seen_before"),
}
"""They look at elements one by one, and leave out those that are no numbers."""


def counts(name: str) -> bool:
    return name in COUNT or "nonfinite" in name or "histogram" in name or name.startswith("n_")


ALIVE = {
    math.inf: ("dead_fraction", "linear_dead_fraction"),
    -math.inf: (
        "dead_fraction",
        "linear_dead_fraction",
        "logit_logsumexp",
        "prediction_entropy",
        "confidence",
    ),
}
"""A unit that reaches infinity is alive; a class that cannot be does not count."""


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_hidden(broken: float) -> None:
    for name in QUANTITIES:
        found = value(name, with_one(broken), with_one(broken))
        if counts(name):
            assert found is None or np.isfinite(found).any(), name
        elif "channel" in name and found.ndim:
            assert not np.isfinite(found[1]), name
            assert np.isfinite(np.delete(found, 1)).all(), name
        elif "quantiles" in name:
            assert np.isnan(found).all() if math.isnan(broken) else np.isfinite(found[1:-1]).all()
        elif name in ALIVE.get(broken, ()):
            assert np.isfinite(found).all(), name
        else:
            assert found is None or not np.isfinite(found).any(), name


SUMS = {"norm", "sum"}
OF_NOTHING = {
    "log_step_size": -math.inf,
    "distance_from_init": 0.0,
}
"""Nothing has moved."""


@pytest.mark.parametrize("shape", [(0, 4), (0, 0)])
def test_of_nothing_there_is_nothing_but_sums(shape: tuple[int, int]) -> None:
    for name in QUANTITIES:
        found = value(name, torch.zeros(shape), torch.zeros(shape))
        if name in OF_NOTHING:
            assert float(found) == OF_NOTHING[name], name
        elif ("histogram" in name and name != "param_histogram") or name.startswith("n_"):
            assert found[:65].sum() == 0 if found.ndim else found == 0, name  # but for a width
        elif name == "sign_flip_count" or (name.rpartition("_")[2] in SUMS and found is not None):
            assert is_missing(found) or float(found) == 0, name
        else:
            assert is_missing(found), (name, found)


ONE_ROW = {"input_std", "output_std"}


def test_one_sample_does_not_vary() -> None:
    for name in QUANTITIES:
        if name == "input_cov_condition" or "_cov_" in name or name.endswith("channel_std"):
            assert is_missing(value(name, X[:1])), name
    assert is_missing(value("participation_ratio", X[:1]))
    assert is_missing(value("saturation", X[:1]))
    for name in ONE_ROW:
        assert is_missing(value(name, X[:1, :1])), name


DEFICIENT: dict[str, float] = {
    "input_cov_stable_rank": 1.0,
    "input_cov_condition": math.inf,
    "effective_rank": 1.0,
    "effective_rank_share": 0.25,
    "sample_effective_rank": 1.0,
    "participation_ratio": 1.0,
    "saturation": 0.25,
    "weight_stable_rank": 1.0,
    "update_orthogonality": 0.25,
}


def test_what_lies_on_a_line_has_one_direction_and_no_rounding_beside_it() -> None:
    line = X[:, :1] * torch.tensor([1.0, -2.0, 0.5, 3.0])
    for name, want in DEFICIENT.items():
        np.testing.assert_allclose(value(name, line), want, rtol=1e-4, err_msg=name)
    for name in ("input_cov_eigs", "output_cov_eigs", "weight_singular_values"):
        found = value(name, line)
        assert (found > 0).tolist() == [True, False, False, False], (name, found)
    largest = value("input_cov_max_eig", line)
    np.testing.assert_allclose(value("input_cov_condition_100", line), largest / 1e-7, rtol=1e-5)


CONSTANT: dict[str, tuple[float, float]] = {
    "output_std": (0.0, 0.0),
    "output_mean": (0.0, 0.3),
    "zero_fraction": (1.0, 0.0),
    "input_cov_max_eig": (0.0, 0.0),
    "input_cov_stable_rank": (math.nan, math.nan),
    "input_cov_condition": (math.inf, math.inf),
    "input_cov_condition_100": (0.0, 0.0),
    "effective_rank": (math.nan, 1.0),
    "effective_rank_share": (math.nan, 0.25),
    "participation_ratio": (math.nan, math.nan),
    "saturation": (math.nan, math.nan),
    "weight_stable_rank": (math.nan, 1.0),
    "update_orthogonality": (math.nan, 0.25),
    "weight_alpha": (math.nan, math.nan),
    "dead_fraction": (1.0, 0.0),
    "linear_dead_fraction": (0.0, 0.0),
    "dormant_fraction": (math.nan, 0.0),
    "layer_rotation": (math.nan, 0.0),
    "grad_cosine": (math.nan, 1.0),
    "range_headroom_bits": (math.inf, 128 - math.log2(0.3)),
    "fp8_error": (math.nan, 0.0),
    "output_grad_fp8_error": (math.nan, 0.0),
    "fp8_underflow_fraction": (math.nan, 0.0),
    "output_grad_fp8_underflow_fraction": (math.nan, 0.0),
    "output_dtype": (24.0, 24.0),
    "distribution_shift": (0.0, 0.0),
}
"""Of zeros, and of 0.3 everywhere."""


@pytest.mark.parametrize("name", CONSTANT)
def test_what_is_the_same_everywhere_has_the_documented_value(name: str) -> None:
    for constant, want in zip((0.0, 0.3), CONSTANT[name], strict=True):
        same = torch.full((12, 4), constant)
        found = value(name, *[same] * (2 if QUANTITIES[name].is_window else 1))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-12, err_msg=str(constant))


@pytest.mark.parametrize("n", [3, 7, 40, 1000])
def test_bins_between_extremes_are_numpys(n: int) -> None:
    values = torch.randn(n, generator=torch.Generator().manual_seed(n))
    found = evaluate(QUANTITIES["param_histogram"], torch.cat([values, torch.tensor([math.nan])]))
    bins = 2 if n <= 5 else 3 if n <= 10 else n // 10 + 1 if n <= 880 else 90
    want, _ = np.histogram(values.double().numpy(), bins)
    np.testing.assert_array_equal(found[:bins], want)
    assert np.isnan(found[bins:]).all()


@pytest.mark.parametrize(
    "values",
    [
        torch.randn(70_000, generator=torch.Generator().manual_seed(0)),
        torch.randint(-45, 46, (5000,), generator=torch.Generator().manual_seed(1)).float(),
        torch.randint(0, 91, (5000,), generator=torch.Generator().manual_seed(2)) * 0.1,
        torch.linspace(-1, 1, 40_001),
        torch.randn(3000, generator=torch.Generator().manual_seed(3)) ** 5 * 1e-20 + 1e-18,
    ],
    ids=["normal", "integers", "tenths", "a line", "tiny"],
)
def test_many_single_precision_values_lie_where_the_edges_say(values: torch.Tensor) -> None:
    exact = values.double().numpy()
    low, high = exact.min(), exact.max()
    edges = low + np.arange(91) * ((high - low) / 90)
    places = np.clip(np.searchsorted(edges, exact, side="right") - 1, 0, 89)
    found = evaluate(QUANTITIES["param_histogram"], values)
    np.testing.assert_array_equal(found, np.bincount(places, minlength=90))


def test_normalised_weights_that_differ_in_the_last_bit_still_have_bins() -> None:
    values = torch.ones(1000)
    values[0] = torch.nextafter(values[0], torch.tensor(2.0))
    found = evaluate(QUANTITIES["param_histogram"], values)
    assert (found[0], found[89], np.nansum(found)) == (999, 1, 1000)
