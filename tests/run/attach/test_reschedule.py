"""A schedule changed while it trains, and presets attached then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch import nn

from notebook_probe.errors import QuantityError, ScheduleError, UnknownNameError
from notebook_probe.run.attach.requests import AttachPreset, Reschedule
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

batch = floats(5, 4)


def test_the_series_goes_on_with_the_new_schedule_from_the_next_step_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes={"": [["output_std", "every(1)"]]})
    train(model, optimizer, batch, range(4))
    assert run.reschedule(None, "output_std", "every(3)") == 1
    train(model, optimizer, batch, range(4, 10))
    series = run.series("", "output_std").dropna("step")
    np.testing.assert_array_equal(series.step, [0, 1, 2, 3, 6, 9])
    assert [probe.schedule for probe in run.status().probes] == ["every(3)"]
    assert [event.kind for event in run.events].count("attach") == 1


def test_it_changes_at_a_selection_alone_and_a_handle_takes_all_of_it_off(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    handle = run.attach("*", "weight_norm", "every(1)")
    n = len(run.status().probes)
    [first, *_] = [probe.module for probe in run.status().probes]
    run.reschedule(first, "weight_norm", "every(5)")
    schedules = {probe.module: probe.schedule for probe in run.status().probes}
    assert schedules.pop(first) == "every(5)"
    assert {*schedules.values()} == {"every(1)"}
    assert len(schedules) == n - 1
    handle.remove()
    assert run.status().probes == ()


def test_modules_that_are_added_later_have_the_new_schedule(watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=None)
    run.attach(nn.Linear, "weight_norm", "every(1)")
    run.reschedule(None, "weight_norm", "every(5)")
    model.insert(1, nn.Linear(4, 4))
    train(model, optimizer, batch, range(2))
    probes = run.status().probes
    assert {probe.schedule for probe in probes} == {"every(5)"}
    assert len(probes) == 3


def test_a_quantity_of_several_steps_may_change_too(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, sgd(model), probes=None)
    run.attach("", "gsnr", "every(10)")
    assert run.reschedule(None, "gsnr", "every(20)") == 1
    assert [probe.schedule for probe in run.status().probes] == ["every(20)"]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            Reschedule(None, "weight_norm", "evry(3)"),
            "schedule 'evry(3)' does not parse; every(3)?",
        ),
        (Reschedule(None, "weight_norm", "every(1)"), "weight_norm: every(1) already"),
        (Reschedule(("0",), "grad_norm", "every(3)"), "grad_norm is not attached at 0"),
        (AttachPreset("gradiens"), "close: 'gradients'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    watch: Watch, request_: Reschedule | AttachPreset, text: str
) -> None:
    model = nn.Sequential(nn.Linear(4, 1))
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=None)
    run.attach("*", "weight_norm", "every(1)")
    ticket = run.controls.put(request_)
    train(model, optimizer, batch, range(1))
    assert ticket.state == "refused"
    assert text in ticket.text


def test_the_calls_raise_at_once(watch: Watch) -> None:
    run = watch(made(mlp), probes={"*": ["weight_norm"]})
    with pytest.raises(ScheduleError, match=r"does not parse; every\(3\)\?"):
        run.reschedule(None, "weight_norm", "evry(3)")
    with pytest.raises(UnknownNameError, match="is not attached at"):
        run.reschedule(None, "grad_norm", 3)
    with pytest.raises(UnknownNameError, match="gradients"):
        run.attach_preset("gradiens")
    with pytest.raises(QuantityError, match="already"):
        run.reschedule(None, "weight_norm", 1)


def test_a_preset_leaves_out_what_is_attached_already(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, sgd(model), probes={"*": [["grad_norm", "every(7)"]]})
    assert run.attach_preset("gradients").state == "applied"
    probes = run.status().probes
    below = [p for p in probes if p.quantity == "grad_norm" and p.module != "(root)"]
    assert {p.schedule for p in below} == {"every(7)"}
    assert len({p.quantity for p in probes}) > 1
    again = run.attach_preset("gradients")
    assert (again.state, "is attached already" in again.text) == ("refused", True)


def test_a_handle_moves_its_own_probes_and_no_others(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    handle = run.attach("*", ["weight_norm", "grad_norm"], "every(2)")
    run.attach("0", "output_norm", "every(2)")
    n_places = len({probe.place for probe in handle.probes})
    assert handle.reschedule("every(5)") == n_places
    assert {str(one.schedule) for one in handle.probes} == {"every(5)"}
    others = [one for one in run.probes() if one.quantity == "output_norm"]
    assert [str(one.schedule) for one in others] == ["every(2)"]
    assert handle.reschedule("every(3)", "weight_norm") == n_places
    due = {one.quantity: str(one.schedule) for one in run.probes()}
    assert due == {"weight_norm": "every(3)", "grad_norm": "every(5)", "output_norm": "every(2)"}
    handle.remove()
    with pytest.raises(UnknownNameError, match="no probe of the handle is attached"):
        handle.reschedule("every(7)")


def test_the_run_moves_the_probes_of_a_handle(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    handle = run.attach("*", ["weight_norm", "grad_norm"], "every(2)")
    n_places = len({probe.place for probe in handle.probes})

    def due() -> dict[str, str]:
        return {one.quantity: str(one.schedule) for one in run.probes()}

    assert run.reschedule(handle, "every(5)") == n_places
    assert due() == {"weight_norm": "every(5)", "grad_norm": "every(5)"}
    assert run.reschedule(handle, "grad_norm", "every(3)") == n_places
    assert due() == {"weight_norm": "every(5)", "grad_norm": "every(3)"}
    assert run.reschedule(handle, schedule=7) == n_places
    assert due() == {"weight_norm": "every(7)", "grad_norm": "every(7)"}
    other = watch(made(mlp), probes=None)
    with pytest.raises(UnknownNameError, match="no probe of the handle is attached"):
        other.reschedule(handle, "every(2)")
    run.detach(handle)
    with pytest.raises(UnknownNameError, match="no probe of the handle is attached"):
        run.reschedule(handle, "every(2)")


@pytest.mark.parametrize("given", [("0",), ("0", "every(5)"), ("handle",)])
def test_a_reschedule_that_lacks_something_says_what_is_expected(
    watch: Watch, given: tuple[str, ...]
) -> None:
    run = watch(made(mlp), probes=None)
    handle = run.attach("0", "weight_norm")
    where: Any = handle if given[0] == "handle" else given[0]
    with pytest.raises(QuantityError, match="a quantity and a schedule are expected"):
        run.reschedule(where, *given[1:])
