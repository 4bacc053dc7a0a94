"""Making a shared reduction: what may be asked for, and what is refused where it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import DuplicateNameError, QuantityError
from notebook_probe.quantities import quantities
from notebook_probe.quantities.reduce.reductions import parts


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (parts, quantities):  # what asks for a reduction goes with it
        monkeypatch.setattr(registry, "_members", {**registry._members})


def one(tensor: Tensor) -> Tensor:
    return tensor.sum(0)


def test_the_function_stays_as_it_was() -> None:
    assert nbp.reduction(one) is one
    assert nbp.reduction(name="by_another_name")(one) is one
    assert "by_another_name" in parts


def test_a_quantity_asks_for_it_by_tensor_and_name() -> None:
    nbp.reduction(name="own_sizes", cost="factorisation")(one)
    nbp.reduction(name="own_more")(lambda own_sizes, spectrum: own_sizes)

    def of_all(input_own_sizes: Tensor, grad_output_own_more: Tensor) -> float:
        return 0.0

    made = nbp.quantity(name="test_of_all_tensors")(of_all)
    assert made.needs == ("input", "grad_output")
    assert made.cost == "factorisation", "the dearest of what it needs"


def test_one_of_others_costs_what_the_dearest_of_them_does() -> None:
    nbp.reduction(name="own_cheap")(one)
    nbp.reduction(name="own_dear")(lambda own_cheap, spectrum: own_cheap)
    assert (parts["own_cheap"].cost, parts["own_dear"].cost) == ("sort", "factorisation")


def misspelt(tensr: Tensor) -> Tensor:
    return tensr


def of_nobody(spectrumm: Any) -> Any:
    return spectrumm


def mixed(tensor: Tensor, spectrum: Any) -> Tensor:
    return tensor


def module_alone(module: Any) -> Any:
    return module


def by_keyword(*, tensor: Tensor) -> Tensor:
    return tensor


def itself(itself: Tensor) -> Tensor:
    return itself


def nothing() -> float:
    return 0.0


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "misspelt": (lambda: nbp.reduction(misspelt), r"misspelt\(tensr\): .*close: 'tensor'"),
    "of nobody": (lambda: nbp.reduction(of_nobody), r"no reduction 'spectrumm'; close: 'spectrum'"),
    "mixed": (lambda: nbp.reduction(mixed), r"mixed\(tensor, spectrum\): allowed"),
    "module alone": (lambda: nbp.reduction(module_alone), r"module_alone\(module\): allowed"),
    "by keyword": (lambda: nbp.reduction(by_keyword), "given by position"),
    "of nothing": (lambda: nbp.reduction(nothing), r"nothing\(\): allowed"),
    "of itself": (lambda: nbp.reduction(itself), "'itself' needs 'itself': a circle"),
    "no name": (lambda: nbp.reduction(lambda tensor: tensor), "must be an identifier"),
    "a taken word": (lambda: nbp.reduction(name="tensor")(one), "other than tensor and module"),
    "a number": (lambda: nbp.reduction(3), "must be an identifier"),  # type: ignore[call-overload]
    "combine": (
        lambda: nbp.reduction(combine="median")(one),  # type: ignore[call-overload]
        "combine='median'; allowed: mean, sum",
    ),
    "cost": (lambda: nbp.reduction(cost="cheap")(one), "cost='cheap'; allowed: scalar"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_where_it_is_written(case: str) -> None:
    make, said = REFUSED[case]
    known = set(parts)
    with pytest.raises(QuantityError, match=said):
        make()
    assert set(parts) == known, "nothing is half registered"


def test_a_circle_of_several_is_refused_and_named_whole() -> None:
    nbp.reduction(name="first")(one)
    nbp.reduction(name="second")(lambda first: first)
    nbp.reduction(name="third")(lambda second: second)

    def again(third: Tensor) -> Tensor:
        return third

    said = "'first' needs 'third', which needs 'second', which needs 'first': a circle"
    with pytest.raises(QuantityError, match=said):
        nbp.reduction(name="first")(again)
    assert parts["third"].needs == ("second",)  # type: ignore[union-attr]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(DuplicateNameError, match="reduction 'spectrum' is already registered"):
        nbp.reduction(name="spectrum")(one)
    for name, of in (("micro", "grad_micro"), ("output_spectrum", "grad_output_spectrum")):
        with pytest.raises(DuplicateNameError, match=f"{name!r} would make {of!r}"):
            nbp.reduction(name=name)(one)


def test_a_cell_that_is_run_twice_defines_it_again() -> None:
    def cell(factor: float) -> Any:
        @nbp.reduction
        def scaled(tensor: Tensor) -> Tensor:
            return factor * tensor

        return scaled

    cell(1.0)
    cell(2.0)
    measured: Any = parts["scaled"]
    state = measured.measure(torch.ones(2), None, frozenset())
    assert measured.finish(state).tolist() == [2.0, 2.0]


def test_a_wrong_name_in_a_quantity_lists_the_close_ones() -> None:
    with pytest.raises(QuantityError, match="'output_covarianc'; close: 'output_covariance'"):
        nbp.quantity(name="test_wrong_name")(lambda output_covarianc: 0.0)
    with pytest.raises(QuantityError, match="'input_cov_eig'; close: 'input_cov_eigs'"):
        nbp.quantity(name="test_wrong_name")(lambda input_cov_eig: 0.0)
