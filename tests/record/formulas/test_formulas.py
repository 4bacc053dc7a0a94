"""Formulas of recorded series: read strictly, computed where every series has a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.formulas import FormulaError, FormulaStreams, formula_stream, parsed
from notebook_probe.record.formulas.functions import FUNCTIONS
from notebook_probe.record.formulas.nodes import Call, Constant, Operation, Reference
from tests.explorer.fakes import FakeStream

ROOT = "(root)"
LOSS = as_measured([2.0, 1.0, 1.5, 0.5, np.nan, 0.25])
ACC = np.array([0.1, 0.5, 0.25, 0.75, 0.5, 1.0], np.float32)
A, B = np.array([1.0, 2.0, 4.0], np.float32), np.array([3.0, 0.0, -1.0], np.float32)


def logged(n: int = 6) -> FakeStream:
    stream = FakeStream("logged", [ROOT], ["loss", "accuracy"], logged=True)
    stream.append(np.arange(n), loss=LOSS[:n, None], accuracy=ACC[:n, None])
    return stream


def streams() -> dict[str, StreamView]:
    """Two logged scalars at steps 0 to 5, and a norm of two modules at 1, 3 and 9."""
    norms = FakeStream("every_2", ["blocks.0", "blocks.1"], ["norm"])
    norms.append(np.array([1, 3, 9]), norm=np.stack([A, B], axis=1))
    found: Any = {"logged": logged(), "every_2": norms}
    return found


def computed(formula: str, among: Mapping[str, StreamView] | None = None) -> tuple[Any, Any]:
    stream = formula_stream(streams() if among is None else among, formula)
    return stream.steps().tolist(), stream.values(formula)[:, 0]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("= 1 - accuracy", 1 - ACC.astype(float)),
        ("=loss/accuracy", LOSS.astype(float) / ACC),
        ("= -loss ^ 2 * 3", -(LOSS.astype(float) ** 2) * 3),
        ("= 2 ^ -accuracy", 2.0 ** -ACC.astype(float)),
        ("= 2 ^ 3 ^ 2 * accuracy", 512 * ACC.astype(float)),
        ("= (loss - 1) - (2 - accuracy)", (LOSS.astype(float) - 1) - (2 - ACC)),
        ("= 8 / 2 / accuracy", 4 / ACC.astype(float)),
        ("= log(accuracy) + exp(accuracy)", np.log(ACC.astype(float)) + np.exp(ACC.astype(float))),
        ("= sqrt(abs(-accuracy)) + log10(accuracy)", np.sqrt(ACC) + np.log10(ACC.astype(float))),
        ("= 1e-3*accuracy + .5", 1e-3 * ACC.astype(float) + 0.5),
        (f'= "accuracy"@"{ROOT}"', ACC),
    ],
)
def test_a_formula_has_the_values_that_numpy_gives(formula: str, expected: Any) -> None:
    steps, values = computed(formula)
    assert steps == [*range(6)]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_a_running_best_keeps_a_nan_at_its_own_step() -> None:
    _, lowest = computed("= running_min(loss)")
    np.testing.assert_array_equal(lowest, [2.0, 1.0, 1.0, 0.5, np.nan, 0.25])
    _, highest = computed("= running_max(accuracy)")
    np.testing.assert_array_equal(highest, np.array([0.1, 0.5, 0.5, 0.75, 0.75, 1.0], np.float32))


@pytest.mark.parametrize(
    ("function", "expected"),
    [("mean", (A + B) / 2), ("sum", A + B), ("min", [1.0, 0.0, -1.0]), ("max", [3.0, 2.0, 4.0])],
)
@pytest.mark.parametrize("of", ["norm", 'norm@"blocks.*"'])
def test_a_function_over_modules(function: str, of: str, expected: Any) -> None:
    steps, values = computed(f"= {function}({of})")
    assert steps == [1, 3, 9]
    np.testing.assert_allclose(values, expected)


def test_two_schedules_meet_where_both_have_a_value() -> None:
    steps, values = computed("= loss / norm@blocks.0")
    assert steps == [1, 3]
    np.testing.assert_allclose(values, LOSS[[1, 3]] / A[:2])
    _, infinite = computed("= norm@blocks.0 / norm@blocks.1")
    assert infinite.tolist() == [pytest.approx(1 / 3), np.inf, -4.0]


def test_a_step_that_was_not_measured_has_no_value_and_is_no_nan() -> None:
    some: Any = {"logged": logged()}
    some["logged"]._values["accuracy"][2] = np.nan  # the bits of a cell that was never written
    steps, _ = computed("= 1 - accuracy", some)
    assert steps == [0, 1, 3, 4, 5]


def test_rows_that_come_later_are_added_and_nothing_is_read_twice() -> None:
    stream, made = logged(3), FormulaStreams()
    some: Any = {"logged": stream}
    series = [(ROOT, "= running_min(loss)")]
    first = made.of(some, series)["formula = running_min(loss)"]
    assert first.n_rows == 3
    assert made.of(some, series)["formula = running_min(loss)"] is first
    stream.append(np.arange(3, 6), loss=LOSS[3:, None], accuracy=ACC[3:, None])
    reads: list[tuple[int, int | None]] = []
    read = stream.values

    def noted(
        quantity: str, start: int = 0, stop: int | None = None, modules: Sequence[str] | None = None
    ) -> Any:
        reads.append((start, stop))
        return read(quantity, start, stop, modules)

    stream.values = noted  # type: ignore[method-assign]
    second = made.of(some, series)["formula = running_min(loss)"]
    assert reads == [(3, 6)]
    assert (second.n_rows, second.version) == (6, first.version)
    late: Any = {"late": FakeStream("late", [ROOT], ["loss"], logged=True), **some}
    late["late"].append(np.array([-1]), loss=np.array([[9.0]], np.float32))
    third = made.of(late, series)["formula = running_min(loss)"]
    assert third.version != second.version, "a row before the others moves them all"


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("= 1 - acc", "no series 'acc' is recorded; did you mean 'accuracy'?"),
        ("= norm", "norm is recorded of 2 modules: norm@blocks.0 is one, mean(norm) is over all"),
        ('= norm@"blocks.*"', "are 2 modules"),
        ("= norm@blocks.7", "no norm of module 'blocks.7'"),
        ("= loss accuracy", "an operator is expected before 'accuracy'"),
        ("= 1 -", "a number, a series or a bracket is expected at its end"),
        ("= (loss", "a closing bracket is expected at its end"),
        ("= loss)", "an operator is expected before ')'"),
        ("= best(loss)", "no function 'best'"),
        ("= mean(1 - norm)", "mean() takes one quantity, over its modules"),
        ("= loss @ *", "a module after @ is expected"),
        ("= loss; import os", "';' is not allowed"),
        ("= __import__('os')", "no function '__import__'"),
        ("= loss.__class__", "no series 'loss.__class__'"),
        ("= 1 + 2", "a formula needs a series"),
        ("= " + "(" * 60 + "loss" + ")" * 60, "more than 40 parts"),
        ("= " + "loss + " * 200, "500 characters at most"),
        ("=", "at its end"),
    ],
)
def test_what_cannot_be_read_says_what_is_expected(formula: str, why: str) -> None:
    with pytest.raises(FormulaError) as error:
        computed(formula)
    assert why in str(error.value)


def test_series_that_never_meet_are_no_empty_line() -> None:
    apart = streams()
    late = FakeStream("late", ["a"], ["other"])
    late.append(np.array([100]), other=np.ones((1, 1), np.float32))
    with pytest.raises(FormulaError, match="no step has a value of every series"):
        computed("= other / norm@blocks.0", {**apart, "late": late})


def test_signs_bind_as_in_arithmetic() -> None:
    assert parsed("= a - b - c") == Operation(
        "-", Operation("-", Reference("a"), Reference("b")), Reference("c")
    )
    negated = Operation("-", Constant(0.0), Operation("^", Reference("a"), Constant(2.0)))
    assert parsed("= -a^2") == negated
    assert parsed("= mean(q@0.conv)") == Call("mean", Reference("q", "0.conv"))
    assert parsed('= "val/loss"@"a-b"') == Reference("val/loss", "a-b")


def test_every_function_is_in_the_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "how_to" / "panel.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if f"`{name}`" not in text] == []


def test_a_run_gives_the_same_values_as_its_series(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = nbp.watch(model, optimizer, store=tmp_path / "run.zarr", probes=None, budget=None)
    run.attach("*", "grad_norm")
    for step in range(4):
        model(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        run.log(accuracy=step / 4)
    run.close()
    opened = nbp.open_run(tmp_path / "run.zarr")
    norms = [opened.series(name, "grad_norm").values.astype(float) for name in ("0", "2")]
    found = opened.series("", "= grad_norm@0 / grad_norm@2")
    assert found.dims == ("step",)
    np.testing.assert_allclose(found.values, norms[0] / norms[1], rtol=1e-6)
    mean = opened.series("", '= mean(grad_norm@"?")')
    np.testing.assert_allclose(mean.values, (norms[0] + norms[1]) / 2, rtol=1e-6)
    error = opened.series("", "= 1 - accuracy")
    np.testing.assert_allclose(error.values, [1.0, 0.75, 0.5, 0.25])
    assert error.time.values.tolist() == opened.series("", "accuracy").time.values.tolist()
