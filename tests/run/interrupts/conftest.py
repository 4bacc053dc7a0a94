"""Set-up of the tests that interrupt calls."""

from __future__ import annotations

import gc

import pytest
import torch

from tests.run.interrupts.doors import ENGINE


@pytest.fixture(autouse=True)
def no_run_of_an_earlier_test() -> None:
    """Free runs that earlier tests have dropped and not closed: what they leave would count here.

    Such a run is in a cycle, and may live until the next search for garbage.
    """
    if vars(torch.autograd)["_engine_run_backward"] is not ENGINE:
        gc.collect()
