"""How far training is and will go: what the loop tells, and the time that is left."""

from __future__ import annotations

import re
from typing import Any

import pytest
from torch import nn

from notebook_probe.errors import ClosedRunError
from notebook_probe.run.attach.requests import Control
from notebook_probe.run.health.status import StatusHead
from tests.models import floats, sgd, train
from tests.run.conftest import Watch
from tests.run.loops import held_at, training, wait_until

batch = floats(5, 4)


def how_far(head: StatusHead) -> tuple[int, int]:
    return head.end_step, head.epoch


def test_what_nobody_tells_is_not_known(watch: Watch, model: nn.Module) -> None:
    run, optimizer = watch(model, probes=None), sgd(model)
    train(model, optimizer, batch, range(3))
    head = run.controls.status_head()
    assert (how_far(head), head.seconds_left) == ((-1, -1), None)
    assert ": training, step 3, " in repr(run.status())


def test_the_time_left_follows_from_the_steps_left_and_the_speed(
    watch: Watch, model: nn.Module
) -> None:
    run, optimizer = watch(model, probes=None), sgd(model)
    run.expect(end_step=1000, epoch=0)
    assert run.controls.status_head().seconds_left is None, "no step was measured"
    train(model, optimizer, batch, range(4))
    run.expect(epoch=2)
    head = run.controls.status_head()
    assert how_far(head) == (1000, 2), "what is left out stays"
    assert head.seconds_left == pytest.approx((1000 - head.step) / head.steps_per_second)
    assert re.search(r"step 4 of 1000, epoch 2, \d+:\d\d:\d\d left, ", repr(run.status()))
    run.expect(end_step=-1)
    assert how_far(run.controls.status_head()) == (-1, 2)
    run.expect(end_step=4)
    assert run.controls.status_head().seconds_left == 0
    train(model, optimizer, batch, range(1))
    head = run.controls.status_head()
    assert (head.end_step, head.seconds_left) == (-1, None), "it has gone past it"


def test_time_is_left_while_it_trains_or_is_paused_alone(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.expect(end_step=10**9)
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 3)
        assert (run.controls.status_head().seconds_left or 0) > 0
        run.controls.put(Control("pause"))
        step = held_at(run)
        head = run.controls.status_head()
        assert head.seconds_left == pytest.approx((10**9 - step) / head.steps_per_second)
    run.controls.settle()
    assert (run.controls.status_head().state, run.controls.status_head().seconds_left) == (
        "idle",
        None,
    )
    run.close()
    assert (run.controls.status_head().end_step, run.controls.status_head().seconds_left) == (
        10**9,
        None,
    )


@pytest.mark.parametrize("value", [-2, 1.0, True, "10"])
@pytest.mark.parametrize("name", ["end_step", "epoch"])
def test_anything_but_a_whole_number_is_refused(
    name: str, value: Any, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.expect(end_step=7, epoch=1)
    with pytest.raises(ValueError, match=re.escape(f"expect: {name}={value!r}; allowed: a whole")):
        run.expect(**{name: value})
    assert how_far(run.controls.status_head()) == (7, 1)


def test_a_closed_run_expects_nothing(watch: Watch, model: nn.Module) -> None:
    run = watch(model)
    run.close()
    with pytest.raises(ClosedRunError):
        run.expect(end_step=3)
