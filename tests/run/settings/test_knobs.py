"""Knobs of the user's own, set by request between two steps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError, DuplicateNameError, SettingError
from notebook_probe.run.attach.requests import Set
from notebook_probe.run.settings.setting import KnobInfo
from tests.models import floats, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.loops import applied, training, wait_until

batch = floats(5, 4)


class Dial:
    """A number that remembers who has turned it."""

    def __init__(self, value: float = 1.0) -> None:
        self.value, self.turned = value, [value]

    def get(self) -> float:
        return self.value

    def set(self, value: float) -> None:
        self.value = value
        self.turned.append(value)


def test_a_knob_is_listed_and_set_and_each_change_is_an_event(
    watch: Watch, model: nn.Module
) -> None:
    dial, optimizer = Dial(), sgd(model)
    run = watch(model, optimizer)
    run.knob("temperature", dial.get, dial.set, low=0.1, high=10, log=True)
    assert run.knobs()[-1] == KnobInfo("temperature", 1.0, 0.1, 10, True)
    train(model, optimizer, batch, range(2))
    ticket = run.set("temperature", 2.5)
    assert dial.value == 1.0, "a step is open"
    train_step(model, optimizer, batch(2))
    assert (dial.turned, ticket.text) == ([1.0, 2.5], "temperature 1 → 2.5")
    (event,) = [event for event in run.events if event.kind == "set"]
    assert (event.step, event.text) == (2, "temperature 1 → 2.5")
    assert json.loads(event.detail) == {
        "name": "temperature",
        "group": None,
        "from": 1.0,
        "to": 2.5,
    }


def test_a_knob_is_turned_by_the_thread_that_trains(watch: Watch, model: nn.Module) -> None:
    import threading

    threads: list[str] = []
    run = watch(model)
    run.knob("k", lambda: 0, lambda value: threads.append(threading.current_thread().name))
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 1)
        assert applied(run, Set("k", 3)).state == "applied"
    assert threads == ["notebook-probe-training"]


def test_a_whole_number_stays_whole(watch: Watch, model: nn.Module) -> None:
    dial = Dial(4)
    run = watch(model)
    run.knob("accumulate", dial.get, dial.set)
    run.set("accumulate", 8)
    assert type(dial.value) is int


def test_what_its_setter_raises_refuses_the_request_and_never_ends_training(
    watch: Watch, model: nn.Module
) -> None:
    def fail(value: float) -> None:
        raise RuntimeError(f"cannot be {value}")

    run, optimizer = watch(model, probes={"0": ["output_norm"]}), sgd(model)
    run.knob("k", lambda: 0, fail)
    train_step(model, optimizer, batch(0))
    ticket = run.controls.put(Set("k", 2))
    train_step(model, optimizer, batch(1))
    assert (ticket.state, ticket.text) == ("refused", "RuntimeError: cannot be 2")
    assert not [event for event in run.events if event.kind == "set"]
    assert run.data.step.values.tolist() == [0, 1]


def test_a_getter_that_fails_later_leaves_the_value_unknown(watch: Watch, model: nn.Module) -> None:
    state = {"k": 1.0}
    run = watch(model)
    run.knob("k", lambda: state["k"], lambda value: state.update(k=value))
    del state["k"]
    assert math.isnan(run.knobs()[-1].value)
    assert run.set("k", 3.0).text == "k 3"
    assert run.knobs()[-1].value == 3.0


def test_a_knob_of_the_same_name_replaces_the_one_before(watch: Watch, model: nn.Module) -> None:
    first, again = Dial(), Dial()
    run = watch(model)
    for dial in (first, again):
        run.knob("k", dial.get, dial.set)
    run.set("k", 2)
    assert (first.turned, again.turned) == ([1.0], [1.0, 2])
    assert [knob.name for knob in run.knobs()] == ["k"]


BAD: dict[str, tuple[Callable[[nbp.Run], object], type[Exception], str]] = {
    "name": (lambda run: run.knob("", int, print), SettingError, "its name is a text"),
    "get": (lambda run: run.knob("k", 3, print), SettingError, "get=3"),  # type: ignore[arg-type]
    "set": (lambda run: run.knob("k", int, None), SettingError, "set=None"),  # type: ignore[arg-type]
    "no number": (lambda run: run.knob("k", str, print), SettingError, "k=''; one number"),  # type: ignore[arg-type]
    "ends": (lambda run: run.knob("k", int, print, 2, 1), SettingError, "low is below high"),
    "log": (lambda run: run.knob("k", int, print, 0, log=True), SettingError, "low is above 0"),
    "nan": (lambda run: run.knob("k", int, print, math.nan), SettingError, "a finite number"),
    "taken": (
        lambda run: run.knob("lr", int, print),
        DuplicateNameError,
        "run.set('lr', ...) sets",
    ),
    "low": (lambda run: run.set("k", 0), SettingError, "k=0; a number from 1 to 3 is"),
    "high": (lambda run: run.set("k", 4), SettingError, "k=4; a number from 1 to 3 is"),
    "group": (
        lambda run: run.set("k", 2, group=0),
        SettingError,
        "k, group=0: only options",
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_what_makes_no_knob_and_no_value_is_refused(
    case: tuple[Callable[[nbp.Run], object], type[Exception], str], watch: Watch, model: nn.Module
) -> None:
    act, error, text = case
    run, dial = watch(model, sgd(model)), Dial()
    run.knob("k", dial.get, dial.set, low=1, high=3)
    with pytest.raises(error, match=re.escape(text)):
        act(run)
    assert dial.turned == [1.0]
    assert [knob.name for knob in run.knobs()][-1] == "k"


def test_a_closed_run_takes_no_knob(watch: Watch, model: nn.Module) -> None:
    run: Any = watch(model)
    run.close()
    for act in (lambda: run.knob("k", int, print), run.knobs):
        with pytest.raises(ClosedRunError):
            act()
