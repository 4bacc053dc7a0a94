"""Quantities of the user's own: defined again, broken, mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities.reduce.spectrum import Spectrum
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)


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
    assert "test_share" in [entry.name for entry in run.attachable()]


def test_a_catalogue_names_the_calls_that_hand_over_what_a_quantity_needs(watch: Watch) -> None:
    needs = {entry.name: entry.needs for entry in watch(made(mlp)).attachable()}
    assert needs["sharpness"] == ("run.probe_batch(...)",)
    assert needs["accuracy"] == ("output", "run.batch(targets=...)")
    assert needs["loss_spike_score"] == ("run.log(loss=...)",)
    assert needs["update_ratio"] == ("update", "weight")


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
    text: "could not convert|returned str",
    nothing: "returned NoneType None; one real number is expected",
    complex_number: "returned complex",
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
        run.controls.settle()
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
    run.controls.settle()
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
    run.controls.settle()
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
    run.controls.settle()
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


def test_no_memory_for_a_copy_of_the_weights_ends_only_what_needs_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*args: Any, **kwargs: Any) -> Tensor:
        raise torch.OutOfMemoryError("no room for another copy")

    model, twin = made(mlp), made(mlp)
    run = watch(model)
    monkeypatch.setattr(torch, "empty_like", no_memory)
    train(model, sgd(model), batch, range(6))
    monkeypatch.undo()
    train(twin, sgd(twin), batch, range(6))
    assert all(map(torch.equal, model.parameters(), twin.parameters()))
    assert len(run.series("0", "weight_norm")) == 6
    assert len(run.series("0", "grad_norm")) == 6
    told = [probe for probe in run.probes() if probe.quantity == "update_ratio"]
    assert told
    assert all(probe.disabled and "no room" in probe.error for probe in told)


def test_a_schedule_that_raises_is_asked_no_more_once_its_probes_are_disabled(
    watch: Watch,
) -> None:
    asked: list[int] = []

    def broken(step: int) -> bool:
        asked.append(step)
        raise ValueError("no such day")

    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "weight_norm", broken)
    train(model, sgd(model), batch, range(8))
    assert asked == [0, 1, 2]
    assert run.probes()[0].disabled


def writes(output: Tensor) -> Tensor:
    return output.mul_(2).sum()


def writes_later(output: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006
    seen.append(1)
    return output.mul_(1.0 if len(seen) == 2 else 2.0).sum() if len(seen) > 1 else output.sum()


def forbids_gradients(output: Tensor) -> float:
    torch.set_grad_enabled(False)
    return 1.0


def changes_the_dtype(output: Tensor) -> float:
    torch.set_default_dtype(torch.float64)
    return 1.0


@pytest.mark.parametrize("function", [writes, writes_later, forbids_gradients, changes_the_dtype])
def test_one_that_interferes_is_disabled_before_training_feels_it(
    function: Callable[..., Any], watch: Watch
) -> None:
    model, twin = made(mlp), made(mlp)
    run = watch(model, probes={"0": [function]})
    train(model, sgd(model), batch, range(4))
    train(twin, sgd(twin), batch, range(4))
    assert all(map(torch.equal, model.parameters(), twin.parameters()))
    run.controls.settle()
    (probe,) = run.probes()
    assert probe.error.startswith(f"InterferenceError: {function.__name__} ")
    assert (probe.disabled, probe.n_errors, probe.note) == (True, 1, "disabled at once")


def test_an_error_that_cannot_be_read_is_counted_all_the_same(watch: Watch) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def mute(output: Tensor) -> float:
        raise Mute

    def endless(output: Tensor) -> float:
        raise ValueError("x" * 100_000)

    model = made(mlp)
    run = watch(model, probes={"0": [mute, endless]})
    train(model, sgd(model), batch, range(4))
    run.controls.settle()
    one, other = run.probes()
    assert one.error == "Mute: its text cannot be read: ValueError"
    assert one.disabled
    assert len(other.error) < 3000


def test_a_vector_that_no_record_can_hold_is_the_probes_error(watch: Watch) -> None:
    @nbp.quantity(name="test_endless_vector", axis=nbp.PER_CHANNEL)
    def endless(output: Tensor) -> Tensor:
        return output.new_zeros(2**18 + 1)

    model = made(mlp)
    run = watch(model, probes={"0": [endless, "output_norm"]})
    train(model, sgd(model), batch, range(3))
    run.controls.settle()
    assert "returned 262145 numbers; at most 262144 are recorded" in run.probes()[0].error
    assert len(run.series("0", "output_norm")) == 3


def test_states_that_nobody_can_pool_are_its_own_error_and_take_no_others_values(
    watch: Watch,
) -> None:
    """A weight has four columns and a bias five: they have no common covariance."""

    @nbp.quantity(name="test_of_all")
    def of_all(grad_spectrum: Spectrum) -> Tensor:
        return grad_spectrum.leading[0]

    model = made(mlp)
    run = watch(model, probes={"0": [of_all, "weight_norm"]})
    train(model, sgd(model), batch, range(3))
    assert len(run.series("0", "weight_norm")) == 3
    run.controls.settle()
    failed, _ = run.probes()
    assert "have no common covariance" in failed.error
    assert (failed.n_errors, failed.disabled) == (3, True)
    assert run.status().dropped_rows == 0
