"""What a call of a hook takes beside what it sees itself is measured once, and disturbs nothing."""

from __future__ import annotations

import math
import threading

import pytest
import torch
from torch import nn

from notebook_probe.probes import calibration
from notebook_probe.probes.calibration import LEAST_S, MOST_S, USUAL_S, calibrate
from notebook_probe.probes.step import calling
from notebook_probe.probes.step.calling import is_known, seconds_of_a_call
from notebook_probe.quantities.reduce.features import Moment

OF_AUTOGRAD: tuple[Moment, ...] = "backward", "entry", "accumulated"


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_seconds", {})


def test_nothing_is_counted_before_it_is_known() -> None:
    assert not is_known()
    assert seconds_of_a_call("forward") == 0.0


def test_it_is_positive_and_finite_and_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate()
    assert is_known()
    found = dict(calling._seconds)
    for seconds in found.values():
        assert math.isfinite(seconds)
        assert LEAST_S <= seconds <= MOST_S
    assert len({*map(seconds_of_a_call, OF_AUTOGRAD)}) == 1
    assert seconds_of_a_call("batch") == 0.0, "the loop calls, not torch"
    monkeypatch.setattr(calibration, "_measured", lambda: (1.0, 1.0))
    calibrate()
    assert calling._seconds == found


def test_several_threads_measure_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure() -> tuple[float, float]:
        measured.append(1)
        return 1e-5, 2e-5

    monkeypatch.setattr(calibration, "_measured", measure)
    threads = [threading.Thread(target=calibrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured == [1]
    assert (seconds_of_a_call("forward"), seconds_of_a_call("entry")) == (1e-5, 2e-5)


def test_random_numbers_and_modes_of_the_training_are_left_alone() -> None:
    before = torch.get_rng_state()
    with torch.device("meta"), torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        calibrate()
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before)
    assert seconds_of_a_call("forward") != USUAL_S, "none of them has kept it from being measured"


def test_somebody_elses_hooks_that_raise_leave_what_is_usual() -> None:
    def refuse(module: nn.Module, args: object) -> None:
        raise ZeroDivisionError("on purpose")

    handle = nn.modules.module.register_module_forward_pre_hook(refuse)
    try:
        calibrate()
    finally:
        handle.remove()
    assert seconds_of_a_call("forward") == seconds_of_a_call("backward") == USUAL_S
