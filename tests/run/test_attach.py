"""Attaching and detaching: by every spelling, before and while training runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import (
    ClosedRunError,
    NotApplicableError,
    QuantityError,
    ScheduleError,
    UnknownNameError,
)
from notebook_probe.schedules import schedule
from tests.models import ConvNet, Shared, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
images = floats(4, 1, 6, 6)


def attached(run: nbp.Run) -> list[tuple[str, str, str]]:
    return [(probe.module, probe.quantity, probe.schedule) for probe in run.probes()]


def by_stride(path: str, module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d) and module.stride == (1, 1)


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ("conv1", ["conv1"]),
        ("conv1.weight", ["conv1.weight"]),
        ("conv*", ["conv1", "conv2"]),
        ("*1", ["conv1", "norm1"]),
        ("*.bias", ["norm1.bias", "norm2.bias", "head.bias"]),
        (nn.Conv2d, ["conv1", "conv2"]),
        (nn.modules.batchnorm._BatchNorm, ["norm1", "norm2"]),
        ("Conv2d", ["conv1", "conv2"]),
        ("_BatchNorm", ["norm1", "norm2"]),
        (by_stride, ["conv1", "conv2"]),
        (["head", "conv1"], ["head", "conv1"]),
        (("conv2", nn.Conv2d), ["conv2", "conv1"]),
        (iter(["head"]), ["head"]),
    ],
)
def test_a_selection_means_these_places(where: Any, places: list[str], watch: Watch) -> None:
    run = watch(made(ConvNet), probes=None)
    run.attach(where, "weight_norm")
    assert [module for module, _, _ in attached(run)] == places


@pytest.mark.parametrize("where", ["", "(root)", "ConvNet", ConvNet])
def test_the_root_has_a_name_too(where: Any, watch: Watch) -> None:
    run = watch(made(ConvNet), probes=None)
    run.attach(where, "grad_norm")
    assert attached(run) == [("(root)", "grad_norm", "every(1)")]


def test_a_module_of_the_model_stands_for_itself(watch: Watch) -> None:
    model = made(ConvNet)
    run = watch(model, probes=None)
    run.attach(model.norm2, "output_norm")
    assert attached(run) == [("norm2", "output_norm", "every(1)")]


def test_a_shared_module_is_found_under_its_second_name_too(watch: Watch) -> None:
    model = made(Shared)
    model.again = model.twice
    run = watch(model, probes=None)
    run.attach("again", "weight_norm")
    train_step(model, sgd(model), batch(0))
    run.settle()
    assert [probe.n_values for probe in run.probes()] == [1]


def test_taiyis_dict_is_accepted_as_it_is_written(watch: Watch) -> None:
    model = made(ConvNet)
    run = watch(model, probes=None)
    run.attach(
        {
            nn.BatchNorm2d: [["InputSndNorm", "linear(5,0)"], "OutputGradSndNorm"],
            "head": ["WeightNorm", ["WeightNorm", "linear(2, 1)"]],
            "Conv2d": "WeightNorm",
            "conv1": [["WeightNorm"]],
        }
    )
    assert sorted(attached(run)) == sorted(
        [
            ("norm1", "input_norm", "every(5)"),
            ("norm2", "input_norm", "every(5)"),
            ("norm1", "output_grad_norm", "every(1)"),
            ("norm2", "output_grad_norm", "every(1)"),
            ("head", "weight_norm", "every(1)"),
            ("head", "weight_norm", "every(2, 1)"),
            ("conv1", "weight_norm", "every(1)"),
            ("conv2", "weight_norm", "every(1)"),
        ]
    )
    train(model, sgd(model), images, range(6))
    assert run.series("norm1", "input_norm").step.values.tolist() == [0, 5]
    assert run.series("head", "weight_norm").step.values.tolist() == [0, 1, 2, 3, 4, 5]


def test_taiyis_dict_may_be_given_when_watching_begins(watch: Watch) -> None:
    run = watch(made(ConvNet), probes={"head": ["WeightNorm"], nn.Conv2d: [["WeightNorm", 3]]})
    assert len(run.probes()) == 3
    assert run.events == ()


@pytest.mark.parametrize("nothing", [None, {}, {"head": []}])
def test_no_probes_is_a_choice(nothing: object, watch: Watch) -> None:
    assert watch(made(ConvNet), probes=nothing).probes() == []


def test_attaching_twice_changes_nothing(watch: Watch) -> None:
    def share(output: Tensor) -> Tensor:
        """A plain function."""
        return output.amax()

    model = made(mlp)
    run = watch(model, probes=None)
    for _ in range(3):
        run.attach("*", ["output_norm", share])
    train_step(model, sgd(model), batch(0))
    run.settle()
    run.attach("*", ["output_norm", share])
    assert len(run.probes()) == 6
    assert [probe.n_values for probe in run.probes()] == [1] * 6
    assert len(run.events) == 1


def test_where_a_quantity_does_not_fit_is_listed_for_a_glob(watch: Watch) -> None:
    run = watch(made(ConvNet), probes=None)
    handle = run.attach("*", "weight_norm")
    assert [module for module, _, _ in attached(run)] == [
        "conv1",
        "norm1",
        "conv2",
        "norm2",
        "head",
    ]
    assert handle.skipped == (
        "weight_norm needs 'weight'; 'relu' (ReLU) has none",
        "weight_norm needs 'weight'; 'pool' (AvgPool2d) has none",
    )
    assert repr(handle) == "<Handle weight_norm at 5 modules, 2 skipped>"


# ---------------------------------------------------------------- when it acts


def test_before_training_it_acts_on_the_first_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "output_norm")
    train(model, sgd(model), batch, range(2))
    assert run.series("0", "output_norm").step.values.tolist() == [0, 1]


def test_while_training_runs_it_acts_on_the_next_step(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, probes={"2": ["output_norm"]})
    for step in range(6):
        optimizer.zero_grad()
        output = model(batch(step))
        if step == 2:
            handle = run.attach("0", ["output_norm", "weight_norm"])
            waiting = run.probes()[1]
            assert waiting.note == "measured from the next step on"
        if step == 4:
            handle.remove()
        output.square().mean().backward()
        optimizer.step()
    assert run.series("0", "output_norm").step.values.tolist() == [3, 4]
    assert run.series("0", "weight_norm").step.values.tolist() == [3, 4]
    assert run.series("2", "output_norm").step.values.tolist() == [0, 1, 2, 3, 4, 5]
    told = [(event.step, event.kind, event.text) for event in run.events]
    assert told == [
        (3, "attach", "output_norm, weight_norm at 0, every(1)"),
        (5, "detach", "output_norm, weight_norm at 0, every(1)"),
    ]
    run.attach("0", "output_norm")
    assert run.probes()[-1].attached_step == 6


@settings(max_examples=12, deadline=None)
@given(
    text=st.one_of(
        st.tuples(st.integers(1, 6), st.integers(-3, 9)).map(lambda pair: f"every{pair}"),
        st.tuples(st.integers(1, 6), st.integers(0, 9)).map(lambda pair: f"linear{pair}"),
    ),
    start=st.integers(0, 8),
)
def test_a_series_holds_the_due_steps_from_the_attach_on(
    text: str, start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    with nbp.watch(model, store=tmp_path_factory.mktemp("law") / "r.zarr", probes=None) as run:
        run.attach("2", "output_norm")
        for step in range(14):
            if step == start:
                run.settle()
                run.attach("0", ["output_norm", "grad_norm"], text)
            train_step(model, optimizer, batch(step))
        due = [step for step in range(start, 14) if schedule(text)(step)]
        for quantity in ("output_norm", "grad_norm") if due else ():
            assert run.series("0", quantity).step.values.tolist() == due


def test_a_callable_decides_when(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "output_norm", lambda step: step in (1, 2, 4))
    run.attach("0", "weight_norm", nbp.Steps([0, 3]))
    train(model, sgd(model), batch, range(6))
    assert run.series("0", "output_norm").step.values.tolist() == [1, 2, 4]
    assert run.series("0", "weight_norm").step.values.tolist() == [0, 3]


def test_two_schedules_of_one_quantity_give_their_union(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "output_norm", "every(3)")
    run.attach("0", "output_norm", "every(4)")
    train(model, sgd(model), batch, range(9))
    assert run.series("0", "output_norm").step.values.tolist() == [0, 3, 4, 6, 8]


def test_attaching_from_inside_a_hook_works(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    handles: list[nbp.Handle] = []

    def hook(module: nn.Module, args: object, output: Tensor) -> None:
        if not handles:
            handles.append(run.attach("*", "output_norm"))
        else:
            handles.pop().remove()

    model.get_submodule("1").register_forward_hook(hook)
    train(model, sgd(model), batch, range(6))
    assert run.series("0", "output_norm").step.values.tolist() == [1, 3, 5]


# ---------------------------------------------------------------- handles


def test_a_handle_removes_what_it_attached_and_nothing_more(watch: Watch) -> None:
    run = watch(made(mlp), probes={"0": ["output_norm"]})
    handle = run.attach("*", "weight_norm")
    assert len(run.probes()) == 3
    handle.remove()
    assert attached(run) == [("0", "output_norm", "every(1)")]


def test_removing_twice_does_not_take_off_what_came_later(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    first = run.attach("0", "weight_norm")
    first.remove()
    run.attach("0", "weight_norm")
    first.remove()
    assert len(run.probes()) == 1


def test_a_handle_is_a_context(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, probes=None)
    train_step(model, optimizer, batch(0))
    run.settle()
    with run.attach("0", "output_norm") as handle:
        train(model, optimizer, batch, (1, 2))
        assert "output_norm at 1 modules" in repr(handle)
    train(model, optimizer, batch, (3, 4))
    assert run.series("0", "output_norm").step.values.tolist() == [1, 2]


def test_a_handle_may_outlive_its_run(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    handle = run.attach("0", "weight_norm")
    run.close()
    handle.remove()
    handle.remove()


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("0",), 3),
        (("0", "weight_norm"), 4),
        (("*", "WeightNorm"), 3),
        ((nn.Linear, "output_norm"), 3),
        (("*",), 0),
    ],
)
def test_detaching_by_selection(arguments: tuple[Any, ...], left: int, watch: Watch) -> None:
    run = watch(made(mlp), probes={"*": ["weight_norm", "output_norm"]})
    assert len(run.probes()) == 5
    run.detach(*arguments)
    assert len(run.probes()) == left


def test_what_waits_for_the_next_step_can_be_detached_by_name(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    run.attach("0", "weight_norm")
    run.detach("0", "weight_norm")
    train_step(model, sgd(model), batch(1))
    assert run.probes() == []
    assert run.events == ()


def test_a_plain_function_is_detached_by_its_name(watch: Watch) -> None:
    def share(output: Tensor) -> Tensor:
        """A plain function."""
        return output.amax()

    run = watch(made(mlp), probes=None)
    run.attach("0", share)
    run.detach("0", "share")
    assert run.probes() == []


def test_detaching_what_is_not_attached_says_what_is(watch: Watch) -> None:
    run = watch(made(mlp), probes={"0": ["weight_norm", "output_norm"]})
    with pytest.raises(
        UnknownNameError,
        match="grad_norm is not attached at 0; attached there: output_norm, weight_norm",
    ):
        run.detach("0", "grad_norm")
    with pytest.raises(UnknownNameError, match="nothing is attached at 2"):
        run.detach("2")


# ---------------------------------------------------------------- the user's own quantities


@pytest.fixture
def share() -> Callable[..., nbp.Quantity]:
    """Defines the same quantity again each time, as a cell does that is run twice."""

    def define(factor: float = 1.0) -> nbp.Quantity:
        @nbp.quantity(units="%", name="test_share")
        def share(output: Tensor) -> Tensor:
            """Share of the largest activation."""
            return factor * output.abs().amax() / output.abs().sum()

        return share

    return define


def test_an_own_quantity_is_measured_with_its_units(
    share: Callable[[], nbp.Quantity], watch: Watch
) -> None:
    quantity = share()
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", quantity, nbp.Every(2))
    with torch.no_grad():
        output = model.get_submodule("0")(batch(0)).double().numpy()
    train(model, sgd(model), batch, range(3))
    series = run.series("0", "test_share")
    assert series.step.values.tolist() == [0, 2]
    assert float(series[0]) == pytest.approx(np.abs(output).max() / np.abs(output).sum(), rel=1e-6)
    assert series.attrs["units"] == "%"
    assert series.attrs["long_name"] == "Share of the largest activation."
    assert float(quantity(torch.ones(4))) == 0.25, "still callable like the function"


def test_a_cell_that_is_run_twice_defines_the_quantity_again(
    share: Callable[[float], nbp.Quantity], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = sgd(model, lr=0.0)
    run = watch(model, probes=None)
    run.attach("0", share(1.0))
    train_step(model, optimizer, batch(0))
    run.attach("0", share(3.0))
    train_step(model, optimizer, batch(0))
    assert len(run.probes()) == 1
    first, second = run.series("0", "test_share").values
    assert second == pytest.approx(3 * first, rel=1e-6)


def test_an_own_quantity_can_be_attached_by_name_as_well(
    share: Callable[[], nbp.Quantity], watch: Watch
) -> None:
    share()
    run = watch(made(mlp), probes={"0": ["test_share"]})
    assert run.probes()[0].quantity == "test_share"
    assert "test_share" in [entry.name for entry in run.catalogue()]


def raises(output: Tensor) -> Tensor:
    raise ZeroDivisionError("on purpose")


def wrong_shape(output: Tensor) -> Tensor:
    return output


def text(output: Tensor) -> str:
    return "large"


def nothing(output: Tensor) -> None:
    return None


def complex_number(output: Tensor) -> complex:
    return 1j


BROKEN = {
    raises: "ZeroDivisionError: on purpose",
    wrong_shape: "returned a tensor of shape (5, 8) and torch.float32; one real number is expected",
    text: "could not convert|returned str; one real number is expected",
    nothing: "returned NoneType; one real number is expected",
    complex_number: "returned complex; one real number is expected",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda function: function.__name__)
def test_a_broken_quantity_is_counted_shown_and_disabled(
    broken: Callable[..., Any], watch: Watch
) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [broken, "output_norm"]})
    optimizer = sgd(model)
    for step in range(5):
        for _ in range(4):  # calls of one step are one failing step
            model(batch(step))
        train_step(model, optimizer, batch(step))
        run.settle()
        probe = run.probes()[0]
        assert probe.disabled is (step >= 2)
    assert any(part in probe.error for part in BROKEN[broken].split("|"))
    assert probe.note == "disabled after 3 errors in a row"
    assert probe.n_values == 0
    (shown,) = run.status().errors
    assert shown == probe
    assert len(run.series("0", "output_norm")) == 5, "the others go on"


def test_a_quantity_that_fails_now_and_then_is_not_disabled(watch: Watch) -> None:
    seen: list[int] = []

    def flaky(output: Tensor) -> float:
        seen.append(1)
        if len(seen) % 2:
            raise ValueError("every other time")
        return 1.0

    model = made(mlp)
    run = watch(model, probes={"0": [flaky]})
    train(model, sgd(model), batch, range(8))
    run.settle()
    (probe,) = run.probes()
    assert (probe.n_values, probe.n_errors, probe.disabled) == (4, 4, False)


def test_a_disabled_probe_starts_again_when_it_is_attached_again(watch: Watch) -> None:
    broken = [True]

    def mended(output: Tensor) -> float:
        if broken[0]:
            raise ValueError("not yet")
        return 1.0

    model = made(mlp)
    run = watch(model, probes={"0": [mended]})
    optimizer = sgd(model)
    train(model, optimizer, batch, range(4))
    run.settle()
    assert run.probes()[0].disabled
    broken[0] = False
    run.attach("0", mended)
    train(model, optimizer, batch, range(4, 6))
    assert run.series("0", "mended").step.values.tolist() == [4, 5]
    assert not run.status().errors


def test_a_schedule_that_raises_is_the_probes_error(watch: Watch) -> None:
    def moody(step: int) -> bool:
        raise RuntimeError("not today")

    model = made(mlp)
    run = watch(model, probes={"2": ["output_norm"]})
    run.attach("0", "output_norm", moody)
    train(model, sgd(model), batch, range(4))
    run.settle()
    assert run.probes()[1].error == "RuntimeError: not today"
    assert run.probes()[1].disabled
    assert len(run.series("2", "output_norm")) == 4


def test_inputs_and_outputs_of_one_call_meet_in_one_quantity(watch: Watch) -> None:
    def gain(input: Tensor, output: Tensor) -> Tensor:
        return output.norm() / input.norm()

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    run = watch(model, probes={"1": [gain]})
    with torch.no_grad():
        before = model.get_submodule("0")(batch(0))
        wanted = float(before.relu().norm() / before.norm())
    train_step(model, sgd(model), batch(0))
    assert float(run.series("1", "gain")[0]) == pytest.approx(wanted, rel=1e-6)


# ---------------------------------------------------------------- bad input


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


@pytest.mark.parametrize("wrong", ["all", 5, ["weight_norm"], True])
def test_watch_says_what_probes_may_be(wrong: Any, watch: Watch) -> None:
    with pytest.raises(QuantityError, match="allowed: 'default', None or a dict of selections"):
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


def test_calls_of_a_shared_module_are_one_probe(watch: Watch) -> None:
    model = made(Shared)
    run = watch(model, probes={"*": ["output_norm"]})
    train_step(model, sgd(model), batch(0))
    run.settle()
    assert [(probe.module, probe.n_values) for probe in run.probes()] == [("twice", 1), ("relu", 1)]
