"""The way of a tensor to the store: through each package once."""

from __future__ import annotations

import gc
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from torch import nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.probes.reading import closed_steps
from notebook_probe.record.write.streams.stream import StreamWriter
from tests.models import floats
from tests.run.conftest import Watch

ROOT = Path(nbp.__file__).parent
EVERYBODYS = {"model"}
"""Known to every package, as are the files beside it."""

batch = floats(5, 4)


class Walk:
    """Which package calls which, from a call of a module until a row is recorded."""

    def __init__(self, module: nn.Module) -> None:
        self.calls: list[tuple[str, str]] = []
        self._start = module.register_forward_pre_hook(self._begin)

    def _begin(self, *_: Any) -> None:
        self._start.remove()
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        package = package_of(frame) if event == "call" else ""
        if package:
            caller = frame.f_back
            while caller is not None and not package_of(caller):
                caller = caller.f_back
            self.calls.append((package_of(caller) if caller is not None else "", package))
        if frame.f_code is StreamWriter.record.__code__:
            sys.setprofile(None)

    @property
    def packages(self) -> list[str]:
        """In the order in which they are called, each once for as long as it goes on.

        Quantities are functions: they are called, return, and hand nothing on.
        """
        called = (package for _, package in self.calls if package != "quantities")
        return [package for package, _ in groupby(called)]


def package_of(frame: FrameType) -> str:
    """Of ours, but the ground floor; empty for any other."""
    path = Path(frame.f_code.co_filename)
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ()
    return "" if len(parts) < 2 or parts[0] in EVERYBODYS else parts[0]


@pytest.fixture(scope="module", autouse=True)
def alone() -> None:
    """End the loops and collectors of other tests, which would listen, too."""
    gc.unfreeze()
    gc.collect()


@pytest.mark.parametrize(
    "quantity", ["output_norm", "output_grad_norm", "weight_norm", "grad_norm", "update_ratio"]
)
def test_a_step_of_a_probe_goes_through_no_package_twice(
    quantity: str, model: nn.Sequential, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_steps, "KEEP_S", -1.0)  # each step is recorded as it is closed
    run = watch(model, probes={"0": [quantity]})
    run._parts.facts.close()  # which are no probes: they look at optimizers from outside
    optimizer = SGD(model.parameters(), lr=0.1)

    def train(step: int) -> None:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()

    train(0)
    walk = Walk(model[0])
    try:
        for step in (1, 2):  # the second begins by closing the first
            train(step)
    finally:
        sys.setprofile(None)
    assert walk.packages == ["probes", "run", "record"]
    crossings = {(one, other) for one, other in walk.calls if one and one != other}
    assert crossings == {("probes", "quantities"), ("probes", "run"), ("run", "record")}
