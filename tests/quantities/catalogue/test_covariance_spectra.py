"""The quantities made of eigenvalues, against their definitions and a case made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from notebook_probe.quantities import Quantity, as_quantity
from notebook_probe.quantities.reduce import solvers
from notebook_probe.quantities.reduce.spectrum import spectrum
from tests.quantities.reduce.covariances import NAMES, expected, normal, value


@pytest.mark.parametrize("shape", [(200, 30), (60, 61), (20, 30), (50, 1)])
def test_the_quantities_are_what_they_say(shape: tuple[int, int]) -> None:
    rows = normal(*shape) @ torch.diag(torch.logspace(0, -2, shape[1]))
    state, wanted = spectrum(rows), expected(rows)
    n, singular = shape[1], shape[0] <= shape[1]
    assert value("input_cov_max_eig", state) == pytest.approx(wanted[0], rel=2e-6)
    rank = wanted.sum() / wanted[0]
    assert value("input_cov_stable_rank", state) == pytest.approx(rank, rel=2e-6)
    condition = math.inf if singular else wanted[0] / wanted[-1]
    assert value("input_cov_condition", state) == pytest.approx(condition, rel=1e-6)
    for percent in (20, 50, 80):
        ratio = wanted[0] / (wanted[n * percent // 100] + 1e-7)
        found = value(f"input_cov_condition_{percent}", state)
        assert found == pytest.approx(ratio, rel=1e-6)
    last = 0.0 if singular else wanted[-1]
    found = value("input_cov_condition_100", state)
    assert found == pytest.approx(wanted[0] / (last + 1e-7), rel=1e-6)


def test_a_case_made_by_hand() -> None:
    """Variances 8, 2 and 0 along three directions, in 5 rows."""
    rows = torch.tensor([[4.0, 0, 1], [-4, 0, 1], [0, 2, 1], [0, -2, 1], [0, 0, 1]])
    state = spectrum(rows)
    assert state.eigenvalues.tolist() == pytest.approx([8.0, 2.0, 0.0])
    assert value("input_cov_max_eig", state) == pytest.approx(8)
    assert value("input_cov_stable_rank", state) == pytest.approx(1.25)
    assert value("input_cov_condition", state) == math.inf
    assert value("input_cov_condition_100", state) == pytest.approx(8e7)
    assert value("input_cov_condition_50", state) == pytest.approx(4)


@pytest.mark.parametrize("rows", [40, 4])
def test_channels_that_say_the_same_make_it_singular(rows: int) -> None:
    one = normal(rows, 3)
    state = spectrum(torch.cat([one, one, 0.3 * one], dim=1))
    assert value("input_cov_condition", state) == math.inf
    assert state.eigenvalues.tolist()[3:] == [0.0] * 6


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (4, 4), (333, 4), (333, 400)])
@pytest.mark.parametrize("constant", [0.0, 0.1, -3e10])
def test_a_constant_input_has_no_rank(shape: tuple[int, int], constant: float) -> None:
    state = spectrum(torch.full(shape, constant))
    assert value("input_cov_max_eig", state) == 0
    assert math.isnan(value("input_cov_stable_rank", state))
    assert value("input_cov_condition", state) == math.inf
    assert value("input_cov_condition_100", state) == 0


@pytest.mark.parametrize(
    ("shape", "dtypes"),
    [((9, 4), [torch.float64]), ((4, 9), [torch.float32]), ((4, 4), [torch.float64])],
)
def test_quantities_of_a_step_share_one_decomposition(
    shape: tuple[int, int], dtypes: list[torch.dtype], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[Tensor] = []
    solve = solvers.eigvalsh

    def spied(matrix: Tensor) -> Tensor:
        solved.append(matrix)
        return solve(matrix)

    for module in ("spectrum", "solvers"):
        monkeypatch.setattr(f"notebook_probe.quantities.reduce.{module}.eigvalsh", spied)
    state = spectrum(normal(*shape))
    assert solved == []
    for name in (*NAMES[:3], NAMES[-1]):
        value(name, state)
    assert [matrix.dtype for matrix in solved] == dtypes
    for name in NAMES:
        value(name, state)
    assert len(solved) == len({*dtypes, torch.float64})
    assert {matrix.shape for matrix in solved} == {(4, 4)}


@pytest.mark.parametrize("shape", [(900, 300), (300, 900), (600, 600)])
@pytest.mark.parametrize("decay", [0.0, -3.0])
def test_the_leading_one_alone_of_many_channels_is_as_exact(
    shape: tuple[int, int], decay: float
) -> None:
    rows = normal(*shape) @ torch.diag(torch.logspace(0, decay, shape[1]))
    largest, total = spectrum(rows).leading
    wanted = expected(rows)
    assert float(largest) == pytest.approx(wanted[0], rel=2e-6)
    assert float(total) == pytest.approx(wanted.sum(), rel=2e-6)


def test_two_directions_that_lead_alike_do_not_confuse_it() -> None:
    spread = torch.ones(300, dtype=torch.float64)
    spread[:2] = 7.0
    turn = torch.linalg.qr(normal(300, 300).double())[0]
    matrix = turn @ torch.diag(spread) @ turn.T
    assert float(solvers.largest_eigenvalue(matrix)) == pytest.approx(7.0, rel=1e-12)
    line = torch.outer(turn[0], turn[0])
    assert float(solvers.largest_eigenvalue(line)) == pytest.approx(1.0)
    assert float(solvers.largest_eigenvalue(0 * line)) == 0.0


ROTATION = np.linalg.qr(np.random.default_rng(0).normal(size=(solvers.LARGE, solvers.LARGE)))[0]


@given(n_alike=st.integers(1, 9), ahead=st.integers(-12, 3), decay=st.integers(-12, 0))
def test_the_largest_of_many_is_found_whatever_lies_below_it(
    n_alike: int, ahead: int, decay: int
) -> None:
    values = np.logspace(decay, 0, solvers.LARGE)
    values[-n_alike:] = 1 + 10.0**ahead
    found = solvers.largest_eigenvalue(torch.tensor(ROTATION * values @ ROTATION.T))
    assert float(found) == pytest.approx(values.max(), rel=1e-6)


def test_they_say_what_they_are() -> None:
    quantities: Sequence[Quantity] = [as_quantity(name) for name in NAMES]
    assert all(quantity.summary and quantity.source for quantity in quantities)
    assert all(quantity.needs == ("input",) for quantity in quantities)
