"""Attaching and detaching: by every spelling, before and while training runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import (
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
    run.controls.settle()
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
    run.controls.settle()
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


@pytest.mark.slow
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
                run.controls.settle()
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
    run.controls.settle()
    with run.attach("0", "output_norm") as handle:
        train(model, optimizer, batch, (1, 2))
        assert repr(handle) == "<Handle output_norm at 0>"
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


def test_calls_of_a_shared_module_are_one_probe(watch: Watch) -> None:
    model = made(Shared)
    run = watch(model, probes={"*": ["output_norm"]})
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert [(probe.module, probe.n_values) for probe in run.probes()] == [("twice", 1), ("relu", 1)]


def test_the_handle_of_what_is_attached_already_has_the_probes_that_measure(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["weight_norm"]})
    handle = run.attach("0", ["weight_norm", "input_norm"])
    train(model, sgd(model), batch, range(3))
    run.controls.settle()
    run.flush()
    assert [probe.n_values for probe in handle.probes] == [3, 3]
