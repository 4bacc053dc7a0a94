"""A copy to the host that fails: every row that was in it is counted, and steps go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from notebook_probe.probes.reading import closed_steps
from notebook_probe.probes.reading.closed_losses import LossRows
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.reading.host_copy import HostCopy
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import MeasuredStep


@dataclass
class Taken:
    """A Recorder that notes what it is given."""

    steps: list[int] = field(default_factory=list)
    lost: list[tuple[int, int, str]] = field(default_factory=list)

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        self.steps += [step.step for step in steps]

    is_followed = False

    def record_losses(self, rows: LossRows) -> None:
        self.steps += rows.steps

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        self.lost.append((step, n_rows, str(error)))

    def announce(self, place: str, name: str) -> None: ...
    def add(
        self, step: int, seconds: float, cost: float, planned: float = 0.0, is_due: bool = False
    ) -> None: ...

    def add_passed(self, passed: object) -> None: ...


class NotBegun(HostCopy):
    def __init__(self, frames: Iterable[StepFrame]) -> None:
        raise MemoryError("no pinned memory")


class NeverCame(HostCopy):
    def frames(self) -> list[StepFrame]:
        raise RuntimeError("the device was lost")


class LostOnTheWay(NeverCame):
    @property
    def has_come(self) -> bool:
        raise RuntimeError("the device was lost")


class Plan:
    """Of three streams, none of which is asked for its values."""

    are_light, are_none, n_rows = True, False, 3


def on_device(step: int, plan: Plan | None = None) -> StepFrame:
    frame = StepFrame(step, plan)  # type: ignore[arg-type]
    frame.on_device = True
    return frame


@pytest.mark.parametrize("copy", [NotBegun, NeverCame, LostOnTheWay])
@pytest.mark.parametrize("waited_s", [0.0, 3600.0])
def test_every_row_of_a_failed_copy_is_counted_once(
    monkeypatch: pytest.MonkeyPatch, copy: type[HostCopy], waited_s: float
) -> None:
    taken = Taken()
    steps = ClosedSteps(taken, taken)
    monkeypatch.setattr(closed_steps, "COPY_S", waited_s)
    monkeypatch.setattr(closed_steps, "HostCopy", copy)
    for step in range(5):
        steps.keep(on_device(step))
    steps.drain()
    assert sorted(step for step, _, _ in taken.lost) == [*range(5)]
    assert {why for _, _, why in taken.lost} <= {"no pinned memory", "the device was lost"}
    monkeypatch.undo()
    steps.keep(on_device(5))
    steps.drain()
    assert taken.steps == [5], "what comes after is recorded"
    assert len(taken.lost) == 5


def test_a_step_of_several_streams_is_as_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken()
    steps = ClosedSteps(taken, taken)
    monkeypatch.setattr(closed_steps, "COPY_S", 3600.0)
    monkeypatch.setattr(closed_steps, "HostCopy", NeverCame)
    steps.keep(on_device(0, Plan()))
    steps.keep(on_device(1))
    steps.drain()
    assert [(step, n_rows) for step, n_rows, _ in taken.lost] == [(0, 3), (1, 1)]
