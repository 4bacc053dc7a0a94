"""What a call of a hook takes beside what it sees itself is measured once, and disturbs nothing."""

from __future__ import annotations

import math
import threading
from typing import NoReturn

import pytest
import torch
from torch import nn

from notebook_probe.probes import calibration
from notebook_probe.probes.calibration import LEAST_S, MOST_S, USUAL_S, calibrate
from notebook_probe.probes.step import calling
from notebook_probe.probes.step.calling import (
    CallSample,
    HookOverhead,
    is_known,
    keep,
    seconds_of_a_call,
)
from notebook_probe.quantities.reduce.features import Moment

OF_AUTOGRAD: tuple[Moment, ...] = "backward", "entry", "accumulated"


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_known", {})


def test_nothing_is_counted_before_it_is_known() -> None:
    assert not is_known()
    assert seconds_of_a_call("forward") == 0.0


def test_it_is_positive_and_finite_and_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate()
    assert is_known()
    found = dict(calling._known)
    for sample in (sample for beside in found.values() for sample in beside):
        assert math.isfinite(sample.after)
        assert sample.after > 0
        assert LEAST_S <= sample.seconds <= MOST_S
    assert len({*map(seconds_of_a_call, OF_AUTOGRAD)}) == 1
    assert seconds_of_a_call("batch") == 0.0, "the loop calls, not torch"
    monkeypatch.setattr(calibration, "_measured", refuse)
    calibrate()
    assert calling._known == found


def refuse(*network: object) -> NoReturn:
    raise AssertionError("measured again")


@pytest.mark.parametrize(
    ("after", "seconds"),
    [(0.0, 1e-5), (2e-5, 1e-5), (3e-5, 1.5e-5), (4e-5, 2e-5), (1.0, 2e-5), (math.inf, 2e-5)],
)
def test_the_longer_others_have_worked_the_more_a_call_takes(after: float, seconds: float) -> None:
    beside = HookOverhead(CallSample(2e-5, 1e-5), CallSample(4e-5, 2e-5))
    keep(beside, beside)
    assert seconds_of_a_call("forward", after) == pytest.approx(seconds, rel=1e-12)
    assert seconds_of_a_call("forward") == 2e-5, "who does not know comes after much else"


def test_samples_in_the_wrong_order_are_no_line() -> None:
    beside = HookOverhead(CallSample(4e-5, 1e-5), CallSample(2e-5, 2e-5))
    assert {beside.at(after) for after in (1e-5, 2e-5, 3e-5, 4e-5)} <= {1e-5, 2e-5}


def test_several_threads_measure_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(*network: object) -> tuple[CallSample, CallSample]:
        measured.append(1)
        return CallSample(1e-6, 1e-5), CallSample(1e-6, 2e-5)

    monkeypatch.setattr(calibration, "_measured", measure)
    threads = [threading.Thread(target=calibrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured == [1, 1], "of the near network and of the far"
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
