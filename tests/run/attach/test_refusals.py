"""What attach and watch refuse, and what they say."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import (
    ClosedRunError,
    NotApplicableError,
    QuantityError,
    ScheduleError,
    UnknownNameError,
)
from tests.models import ConvNet, floats, made, mlp
from tests.run.conftest import Watch

batch = floats(5, 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("conv9", "weight_norm"), UnknownNameError, "no module matches 'conv9' in ConvNet"),
        (("conv9", "weight_norm"), UnknownNameError, "close: 'conv1', 'conv2'|close: 'conv2'"),
        (("head.weigth", "weight_norm"), UnknownNameError, "no module matches 'head.weigth'"),
        (("x*", "weight_norm"), UnknownNameError, r"no module matches 'x\*'"),
        ((nn.LSTM, "weight_norm"), UnknownNameError, "no module matches LSTM"),
        (([], "weight_norm"), UnknownNameError, "an empty selection names no module"),
        (("head", "wieght_norm"), UnknownNameError, "no quantity 'wieght_norm'; close: 'weight_no"),
        (("head", 3), QuantityError, "3 is no quantity"),
        (("head",), QuantityError, "which quantity?"),
        (("head", "weight_norm", "evry(5)"), ScheduleError, r"schedule 'evry\(5\)' does not parse"),
        (("head", "weight_norm", 0), ScheduleError, "the interval must be at least 1"),
        (("relu", "weight_norm"), NotApplicableError, r"needs 'weight'; 'relu' \(ReLU\) has none"),
        (("relu", "grad_norm"), NotApplicableError, r"needs 'grad'; 'relu' \(ReLU\) has none"),
        (("head.bias", "output_norm"), NotApplicableError, "'head.bias' is a parameter"),
        (({"head": [["weight_norm", 1, 2]]},), QuantityError, r"allowed are 'Q', \['Q'\]"),
        (({"head": "weight_norm", "hed": "x"},), UnknownNameError, "no quantity 'x'|'hed'"),
        (("head", lambda outputs: 1.0), QuantityError, "must be an identifier"),
    ],
)
def test_bad_input_is_one_clear_error_and_attaches_nothing(
    arguments: tuple[Any, ...], error: type[Exception], message: str, watch: Watch
) -> None:
    run = watch(made(ConvNet), probes=None)
    with pytest.raises(error, match=message):
        run.attach(*arguments)
    assert run.probes() == []


@pytest.mark.parametrize("where", [5, 2.5, object()])
def test_what_is_no_selection_is_refused(where: Any, watch: Watch) -> None:
    run = watch(made(ConvNet), probes=None)
    with pytest.raises(nbp.ProbeError):
        run.attach(where, "weight_norm")


@pytest.mark.parametrize("wrong", [5, [5], True])
def test_watch_says_what_probes_may_be(wrong: Any, watch: Watch) -> None:
    with pytest.raises(
        QuantityError, match=r"allowed: None, a dict .* or several of default, grad"
    ):
        watch(made(mlp), probes=wrong)


@pytest.mark.parametrize("wrong", ["spectras", ["default", "spectras"]])
def test_an_unknown_preset_lists_the_close_ones(wrong: Any, watch: Watch) -> None:
    with pytest.raises(UnknownNameError, match=r"no preset 'spectras'.*spectra"):
        watch(made(mlp), probes=wrong)


def test_a_closed_run_refuses_and_says_where_its_record_is(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    run.close()
    for act in (
        lambda: run.attach("0", "weight_norm"),
        lambda: run.detach("0"),
        lambda: run.log(loss=1.0),
        run.step,
        lambda: run.train_in_background(lambda: None),
    ):
        with pytest.raises(ClosedRunError, match=f"is closed; its record at {run.location}"):
            act()


def test_a_containers_output_cannot_be_asked_where_it_is_never_called(watch: Watch) -> None:
    model = nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(2, 2)])})
    run = watch(model, probes=None)
    with pytest.raises(NotApplicableError, match=r"'layers' \(ModuleList\) is never called"):
        run.attach("layers", "output_norm")


def test_a_large_model_is_watched_in_linear_time(watch: Watch) -> None:
    looked_at = [0]

    class Counting(nn.Sequential):
        def named_modules(self, *args: Any, **kwargs: Any) -> Any:
            looked_at[0] += 1
            return super().named_modules(*args, **kwargs)

    def walks(n: int) -> int:
        looked_at[0] = 0
        watch(Counting(*(nn.Linear(2, 2) for _ in range(n)))).attach("*", "input_norm")
        return looked_at[0]

    assert walks(40) == walks(4), "as often, however many modules there are"


def test_module_and_quantity_in_each_others_place_are_told(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(UnknownNameError, match=r"the module comes first: attach\('0', 'weight_n"):
        run.attach("weight_norm", "0")
    with pytest.raises(UnknownNameError, match=r"module comes first: attach\('\*', 'weight_n"):
        run.attach("weight_norm", "*")
    run.attach("0", "weight_norm")
    run.log(loss=1.0)
    with pytest.raises(UnknownNameError, match=r"module comes first: series\('\(root\)', 'loss"):
        run.series("loss", "(root)")
    with pytest.raises(UnknownNameError, match="no quantity 'weight_nrm'"):
        run.attach("0", "weight_nrm")


def test_a_class_that_was_defined_again_is_told_from_a_wrong_name(watch: Watch) -> None:
    def defined() -> type[nn.Module]:
        class Block(nn.Linear):
            """As a cell defines it."""

        return Block

    before, after = defined(), defined()
    run = watch(nn.Sequential(before(4, 2)), probes=None)
    with pytest.raises(UnknownNameError, match=r"class Block, which was defined again .* '0'"):
        run.attach(after, "weight_norm")
    assert [one.place for one in run.attach("Block", "weight_norm").probes] == ["0"]
