"""One quantity by itself, as text and in a notebook."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import define
from tests.static.explained import Text


@nbp.quantity(units="%", question=questions.DEAD, aliases=("valve_alias",))
def valve_openness(output: Tensor) -> Tensor:
    """Openness of the valve, ``mean(y > 0) < 1``, of <b>my</b> model.

    Below a half `dead_fraction` tells more.

    Warnings
    --------
    Of one batch.
    """
    return (output > 0).float().mean()


@nbp.quantity
def bare_mean(output: Tensor) -> Tensor:
    return output.mean()


def test_a_built_in_quantity_tells_all_that_there_is_to_know() -> None:
    shown = str(as_quantity("effective_rank"))
    assert shown.startswith("effective_rank: Effective rank of the outputs")
    for line in (
        "  formula         exp(-sum p ln p), p = s / sum(s) + 1e-7",
        "  answers         Do representations collapse? Is the layer too wide?",
        "  how to read it  s are the singular values of the matrix of samples",
        "  pitfalls        Not more than the rows",
        "  needs           output",
        "  units           1",
        "  cost            factorisation",
        "  also called     RankMe",
        "  source          Roy & Vetterli 2007; https://arxiv.org/abs/2210.02885",
    ):
        assert f"\n{line}" in shown


def test_one_of_one_s_own_is_told_with_its_sections_and_that_it_has_no_source() -> None:
    shown = str(valve_openness)
    assert "formula         mean(y > 0) < 1\n" in shown
    assert "how to read it  Below a half dead_fraction tells more.\n" in shown
    assert "pitfalls        Of one batch.\n" in shown
    assert shown.endswith("also called     valve_alias\n  source          not given")


def test_without_a_docstring_there_is_little_to_tell_and_nothing_is_made_up() -> None:
    assert str(bare_mean).splitlines() == [
        "bare_mean",
        "  needs   output",
        "  units   1",
        "  cost    activations",
        "  source  not given",
    ]


def test_in_a_notebook_names_and_formulas_are_code_and_nothing_is_markup_of_the_user_s() -> None:
    html = valve_openness._repr_html_()
    assert "<code>mean(y &gt; 0) &lt; 1</code>" in html
    assert "of &lt;b&gt;my&lt;/b&gt; model" in html
    assert "<code>dead_fraction</code>" in html
    assert Text(html).tags.count("b") == 1, "its name"


def test_a_source_is_a_link() -> None:
    assert (
        '<a href="https://arxiv.org/abs/2210.02885">https://arxiv.org/abs/2210.02885</a>'
        in as_quantity("RankMe")._repr_html_()
    )


def test_shown_by_itself_it_is_told_in_full_and_in_a_list_in_short() -> None:
    display = DisplayFormatter()
    told, _ = display.format(valve_openness)
    assert told["text/plain"] == str(valve_openness)
    assert told["text/html"] == valve_openness._repr_html_()
    listed, _ = display.format([valve_openness])
    assert listed["text/plain"] == "[<quantity valve_openness(output)>]"


def test_its_docstring_is_that_of_the_function() -> None:
    assert inspect.getdoc(as_quantity("lr")) == inspect.getdoc(as_quantity("lr").function)
    assert (inspect.getdoc(valve_openness) or "").startswith("Openness of the valve")


def test_a_card_names_the_call_that_hands_over_what_is_needed() -> None:
    assert "landscape (run.probe_batch(...))" in str(as_quantity("sharpness"))
    assert "batch.targets (run.batch(targets=...))" in str(as_quantity("ece"))


def test_a_usual_value_is_told_of_the_few_that_have_one() -> None:
    assert "about 0.001" in str(as_quantity("update_ratio")).replace("`", "")
    assert "usual value" not in str(as_quantity("grad_norm"))


def test_what_a_quantity_lies_between_is_told_and_said_in_the_record(tmp_path: Path) -> None:
    assert "lies between 0 and 1" in " ".join(str(as_quantity("dead_fraction")).split())
    assert "lies between" not in str(as_quantity("grad_norm"))
    model = torch.nn.Linear(2, 1)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes={"": ["zero_fraction"]}) as run:
        assert run.data.zero_fraction.attrs["lies_between"] == "0.0 1.0"


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, 1, 2), "01", (0, float("nan"))])
def test_bounds_that_are_none_are_refused(bounds: Any) -> None:
    with pytest.raises(QuantityError, match=r"allowed: \(low, high\) with low < high"):
        define(lambda output: output, lambda output: output, name="odd", bounds=bounds)
