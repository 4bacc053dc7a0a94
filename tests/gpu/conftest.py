"""``on_accelerator(scenario, *given)`` runs a scenario on each accelerator that there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from tests.gpu.devices import ON_CUDA, on_cuda, on_pretended
from tests.run.accelerator import Accelerator

__all__ = ["OnAccelerator", "on_accelerator"]

OnAccelerator: TypeAlias = Callable[..., Any]

CUDA = pytest.param("cuda", marks=ON_CUDA)
PRETENDED = pytest.param("pretended", marks=pytest.mark.slow)  # each of its operations is Python


@pytest.fixture(params=[PRETENDED, CUDA])
def on_accelerator(request: pytest.FixtureRequest) -> OnAccelerator:
    """Run a scenario, a function of a module that takes a device first, and return its result."""
    if request.param == "cuda":
        return on_cuda
    pretended: Accelerator = request.getfixturevalue("accelerator")
    return partial(pretended.run, on_pretended)
