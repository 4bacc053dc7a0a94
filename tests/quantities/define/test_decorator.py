"""Defining a quantity: its parameter names are what it needs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import DuplicateNameError, QuantityError, UnknownNameError
from notebook_probe.quantities import Quantity, as_quantity, quantities
from notebook_probe.quantities.table import built_in
from notebook_probe.run.attach.presets import DEFAULT


def test_a_bare_decorator_takes_name_and_summary_from_the_function() -> None:
    @nbp.quantity
    def test_bare(output: Tensor) -> Tensor:
        """Largest of all
        elements.

        And more that nobody lists.
        """
        return output.amax()

    assert (test_bare.name, test_bare.units, test_bare.needs) == ("test_bare", "1", ("output",))
    assert test_bare.summary == "Largest of all elements."
    assert float(test_bare(torch.arange(3.0))) == 2.0
    assert repr(test_bare) == "<quantity test_bare(output)>"
    assert as_quantity("test_bare") is test_bare


def test_every_setting_is_kept() -> None:
    @nbp.quantity(
        units="%", name="test_settings", combine="max", source="Ours 2026", aliases=("TestSet",)
    )
    def anything(weight: Tensor, grad: Tensor) -> Tensor:
        return (weight * grad).sum()

    assert (anything.units, anything.combine, anything.source) == ("%", "max", "Ours 2026")
    assert anything.needs == ("weight", "grad")
    assert as_quantity("TestSet") is anything


def test_a_parameter_with_a_default_is_an_option_and_no_feature() -> None:
    def above(output: Tensor, threshold: float = 0.5) -> Tensor:
        return (output > threshold).float().mean()

    assert as_quantity(above).needs == ("output",)


def test_defining_again_replaces_and_another_of_that_name_raises() -> None:
    def define() -> Quantity:
        @nbp.quantity
        def test_again(output: Tensor) -> Tensor:
            return output.amax()

        return test_again

    first, second = define(), define()
    assert as_quantity("test_again") is second is not first

    with pytest.raises(DuplicateNameError, match="quantity 'weight_norm' is already registered"):

        @nbp.quantity
        def weight_norm(weight: Tensor) -> Tensor:
            return weight.norm()

    with pytest.raises(DuplicateNameError, match="would hide the alias of 'weight_norm'"):
        nbp.quantity(name="WeightNorm")(lambda weight: weight.norm())


def wrong_feature(outptu: Tensor) -> Tensor:
    return outptu


def no_feature() -> float:
    return 1.0


def mixed_moments(output: Tensor, grad: Tensor) -> float:
    return 1.0


def each_of_a_call(each_output_sumsq: Any) -> float:
    return 1.0


def each_tensor(each_grad: Any) -> float:
    return 1.0


def each_logged(each_logged_loss: Any) -> float:
    return 1.0


def mixed_kinds(output: Tensor, output_sumsq: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (wrong_feature, r"wrong_feature\(outptu\): no feature 'outptu'; close: 'output'"),
        (
            wrong_feature,
            "tensors: input, output, grad_output, grad_input, attention, weight, grad, grad_raw, ",
        ),
        (no_feature, r"no_feature\(\) needs no feature; name its parameters after input, output"),
        (mixed_moments, r"\(output, grad\) needs tensors that exist at different moments"),
        (mixed_moments, "use summaries such as output_sumsq"),
        (
            each_of_a_call,
            r"each_... is for weight, .* and their summaries, such as each_grad_sumsq",
        ),
        (each_logged, r"no feature 'each_logged_loss'; each_... is for weight"),
        (
            each_tensor,
            r"each_tensor\(each_grad\): .* are for a window; use .* such as each_grad_sumsq",
        ),
        (mixed_kinds, "mixes tensors and summaries"),
        (lambda output: output, "quantity name '<lambda>'"),
        (functools.partial(wrong_feature), "must be an identifier"),
        (torch.mean, "mean has no signature to read features from|wrap it"),
    ],
)
def test_a_definition_that_cannot_work_says_why(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        nbp.quantity(function)


def test_a_window_of_all_parameters_that_cannot_be_merged_says_so() -> None:
    class Unmerged:
        def reset(self) -> None: ...
        def update(self, each_grad: Tensor) -> None: ...
        def compute(self) -> float:
            return 0.0

    with pytest.raises(
        QuantityError, match=r"unmerged: the class has no merge\(other\), for each_"
    ):
        nbp.window_quantity(Unmerged)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": 3}, "quantity name 3 .* must be an identifier.*nbp.quantity"),
        ({"units": 3}, "3; units, source, question and aliases are text"),
        ({"aliases": (3,)}, "3; units, source, question and aliases are text"),
        ({"axis": "bin"}, "axis='bin'; allowed: an Axis, PER_CHANNEL, IMAGE, None"),
    ],
)
def test_a_setting_of_another_kind_says_what_is_allowed(
    settings: dict[str, Any], message: str
) -> None:
    def test_setting(output: Tensor) -> Tensor:
        return output.sum()

    with pytest.raises(QuantityError, match=message):
        nbp.quantity(**settings)(test_setting)
    assert "test_setting" not in quantities


def test_one_alias_may_be_given_by_itself() -> None:
    @nbp.quantity(aliases="TestLone")
    def test_lone_alias(output: Tensor) -> Tensor:
        return output.sum()

    assert as_quantity("TestLone") is test_lone_alias


def by_keyword(*, output: Tensor) -> Tensor:
    return output.sum()


def any_number(*output: Tensor) -> float:
    return 1.0


@pytest.mark.parametrize("function", [by_keyword, any_number])
def test_features_are_given_by_position(function: Callable[..., Any]) -> None:
    with pytest.raises(QuantityError, match=rf"{function.__name__}\(.*\): .* by position"):
        as_quantity(function)


def test_a_combine_that_nobody_knows_lists_the_known_ones() -> None:
    with pytest.raises(QuantityError, match="combine='median'; allowed: mean, sum, max, min"):
        nbp.quantity(combine="median")(wrong_feature)  # type: ignore[call-overload]


def test_nothing_is_registered_by_a_definition_that_fails() -> None:
    before = list(quantities)
    with pytest.raises(QuantityError):
        nbp.quantity(name="test_half")(mixed_moments)
    assert list(quantities) == before


@pytest.mark.parametrize("given", [3, None, 2.5, ["weight_norm"]])
def test_what_is_no_quantity_is_refused(given: object) -> None:
    with pytest.raises(QuantityError, match="is no quantity; give a name, a quantity or a funct"):
        as_quantity(given)  # type: ignore[arg-type]


def test_an_unknown_quantity_lists_the_close_ones() -> None:
    with pytest.raises(UnknownNameError, match="no quantity 'weihgt_norm'; close: 'weight_norm'"):
        as_quantity("weihgt_norm")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("WeightNorm", "weight_norm"),
        ("InputSndNorm", "input_norm"),
        ("OutputGradSndNorm", "output_grad_norm"),
        ("InputStd", "input_std"),
        ("optimizer_grads_l2norm", "grad_norm"),
    ],
)
def test_taiyis_and_gomlxs_names_are_aliases(alias: str, name: str) -> None:
    assert as_quantity(alias) is as_quantity(name)


def test_every_built_in_quantity_says_what_it_is() -> None:
    for name in (*DEFAULT, "input_norm", "input_mean", "input_std"):
        quantity = as_quantity(name)
        assert quantity.summary, name
        assert quantity.source, name
        assert quantity.units == "1"
        assert name.isidentifier()


@pytest.mark.parametrize(
    "function",
    [
        lambda weight, input: 1.0,
        lambda weight, output: 1.0,
        lambda weight, grad_output: 1.0,
        lambda weight, grad: 1.0,
        lambda weight, update: 1.0,
    ],
)
def test_a_weight_may_join_any_moment(function: Callable[..., float]) -> None:
    function.__name__ = "with_weight"
    assert as_quantity(function).needs[0] == "weight"


def test_a_quantity_of_code_that_names_no_module_is_one_like_any_other() -> None:
    """`exec` runs code in a separate namespace, as some tools run scripts."""
    code = "def homeless(output):\n    'Largest element.'\n    return output.amax()\n"
    namespace: dict[str, Any] = {"__builtins__": __builtins__}
    exec(code, namespace)
    quantity = as_quantity(namespace["homeless"])
    assert quantity.function.__module__ is None
    assert (quantity.name, quantity.family) == ("homeless", "")
    assert quantity not in built_in()
