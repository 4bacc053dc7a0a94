"""Breakpoints that cannot be are refused in words."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from notebook_probe.errors import BreakpointError, QuantityError, UnknownNameError
from tests.models import sgd, train_step
from tests.run.breakpoints.trainings import batch, logging, pauses
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((), BreakpointError, "0 conditions"),
        (("0", "grad_norm"), BreakpointError, "a series is all three"),
        (("0", "grad_norm", "10"), BreakpointError, "such as '> 10'"),
        (("0", "grad_norm", "over 10"), BreakpointError, "no comparison 'over'"),
        (("0", "grad_norm", "> nan"), BreakpointError, "a finite number"),
        (("9", "grad_norm", "> 1"), UnknownNameError, "no module '9'"),
        (("0", "grad_nrm", "> 1"), UnknownNameError, "'grad_nrm' at '0'; close: 'grad_norm'"),
        (("0", "output_histogram", "> 1"), QuantityError, "is a vector"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    given: tuple[Any, ...], error: Any, says: str, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    with pytest.raises(error, match=says):
        run.pause_when(*given)
    assert run.breakpoints == []


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"step": -1}, BreakpointError, "whole number"),
        ({"step": 1, "nan": True}, BreakpointError, "2 conditions"),
        ({"alert": "dead_unit"}, UnknownNameError, "dead_units"),
        ({"step": 1, "before": "update"}, BreakpointError, "can pause before"),
    ],
)
def test_what_options_cannot_be_is_refused_in_words(
    given: dict[str, Any], error: Any, says: str, watch: Watch, model: nn.Module
) -> None:
    with pytest.raises(error, match=says):
        watch(model, probes=None).pause_when(**given)


def test_what_is_known_after_the_update_cannot_hold_before_it(
    watch: Watch, model: nn.Module
) -> None:
    with pytest.raises(BreakpointError, match="known after the update"):
        watch(model).pause_when("0", "update_ratio", "> 1", before="update")


def test_a_step_that_has_passed_is_refused(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    with pytest.raises(BreakpointError, match="step 1 has passed; the next one is 3"):
        run.pause_when(step=1)


def test_a_rank_but_the_first_leaves_it_to_that(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, rank=1)
    handle = run.pause_when(step=1)
    assert handle.note == "acts on rank 0, which the others wait for"
    logging(run, model, [0.0] * 3).wait(PATIENCE_S)
    assert pauses(run) == []
