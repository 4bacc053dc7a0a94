"""What a quantity says of itself: from its docstring, its features and a question."""

from __future__ import annotations

import subprocess
import sys

import pytest
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.docstring import explained

FULL = """Share of zeros,
``#(y = 0) / n``, at ``y``.

Half is usual.

More is not.

Warnings
--------
Of one batch.

Examples
--------
>>> 1
1"""


def test_a_docstring_is_taken_apart() -> None:
    found = explained(FULL)
    assert found.summary == "Share of zeros, #(y = 0) / n, at y."
    assert found.formula == "#(y = 0) / n"
    assert found.reading == "Half is usual.\n\nMore is not."
    assert found.pitfalls == "Of one batch."


def test_a_symbol_alone_is_a_formula_only_where_nothing_else_is() -> None:
    assert explained("Rows, ``R``.").formula == "R"
    assert explained("Curvature, ``max eig(H)``, ``H`` the Hessian.").formula == "max eig(H)"


@pytest.mark.parametrize("doc", ["", "One line.", "Warnings\n--------\nAlone."])
def test_what_a_docstring_does_not_say_is_empty(doc: str) -> None:
    found = explained(doc)
    assert (found.formula, found.reading) == ("", "")


@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("weight_norm", "parameters"),
        ("output_mean", "activations"),
        ("update_ratio", "parameters"),
        ("weight_histogram", "sort"),
        ("effective_rank", "factorisation"),
    ],
)
def test_the_cost_class_follows_from_what_is_read(name: str, cost: str) -> None:
    assert as_quantity(name).cost == cost


def test_a_question_and_a_dearer_class_are_given() -> None:
    @nbp.quantity(question=questions.DEAD, cost="sort")
    def test_docstring_median(output: Tensor) -> Tensor:
        """Median of the output."""
        return output.median()

    assert test_docstring_median.question == "Are my ReLUs dead?"
    assert test_docstring_median.cost == "sort"
    assert test_docstring_median.family == "test_docstring"


def test_an_unknown_cost_class_names_the_known_ones() -> None:
    with pytest.raises(QuantityError, match="test_dear: cost='dear'; allowed: scalar, parameters"):

        @nbp.quantity(cost="dear")  # type: ignore[call-overload, untyped-decorator]
        def test_dear(output: Tensor) -> Tensor:
            return output.amax()


@pytest.mark.slow
def test_what_is_built_in_is_all_that_the_package_registers() -> None:
    script = """
from notebook_probe.quantities import quantities
from notebook_probe.quantities.table import built_in
assert [quantity.name for quantity in built_in()] == list(quantities)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
