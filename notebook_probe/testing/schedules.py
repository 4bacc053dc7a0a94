"""Tests that apply to every schedule, also users' own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from tempfile import TemporaryDirectory
from typing import ClassVar

import torch
from torch import nn

from notebook_probe.run.watch import watch
from notebook_probe.schedules import (
    UNBOUND,
    Schedule,
    ScheduleLike,
    bound,
    can_foresee,
    has_clock,
    restart,
    schedule,
)

__all__ = ["ScheduleSuite"]

FAR = 2**40
"""A step beyond any training, which a schedule must still answer."""


class ScheduleSuite:
    """Tests that every schedule passes: inherit from it, and list your schedules.

    Attributes
    ----------
    schedules : sequence of Schedule, callable, str or int
    steps : int
        Number of steps; each schedule has to be due in one of them.

    Examples
    --------
    >>> class TestOften(ScheduleSuite):
    ...     schedules = ("every(3)", lambda step: step < 5)
    """

    schedules: ClassVar[Sequence[ScheduleLike]] = ()
    steps: ClassVar[int] = 30

    def test_it_says_yes_or_no_at_any_step(self) -> None:
        for one in self._armed():
            for step in (*range(self.steps), FAR):
                assert isinstance(one(step), bool), f"{one} says {one(step)!r} at step {step}"

    def test_it_is_due_sometimes(self) -> None:
        for one in self._all():
            assert self._due(one), f"{one} is never due before step {self.steps}"

    def test_it_says_the_same_whenever_and_however_often_it_is_asked(self) -> None:
        for one in self._all():
            first, armed = self._due(one), bound(one, UNBOUND)
            if has_clock(armed):
                assert self._due(one, twice=True) == first, f"{one} changes within a step"
                continue
            backwards = sorted(step for step in reversed(range(self.steps)) if armed(step))
            assert backwards == first, f"{one} depends on when it is asked"

    def test_equal_schedules_share_rows(self) -> None:
        for one in self._all():
            other = deepcopy(one)
            assert hash(one) == hash(one)
            assert bound(one, UNBOUND).stream == one.stream, f"{one} is another when it is armed"
            if other == one:
                assert (hash(other), other.stream) == (hash(one), one.stream), str(one)

    def test_its_rows_have_a_name_that_a_record_can_hold(self) -> None:
        for one in self._all():
            name = one.stream
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,199}", name), f"{one}: stream {name!r}"

    def test_what_it_foresees_is_when_it_is_due(self) -> None:
        for one in self._armed():
            if can_foresee(one):
                for step in range(self.steps):
                    due = [later for later in self._due(one) if later >= step]
                    found = one.next_due(step)
                    late = found is None or found >= self.steps
                    assert (found in due[:1]) if due else late, f"{one} foresees {found} at {step}"

    def test_a_run_has_a_row_at_exactly_the_steps_that_are_due(self) -> None:
        for one in self._all():
            model = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with (
                TemporaryDirectory() as folder,
                watch(model, optimizer, store=folder, probes=None) as run,
            ):
                run.attach("", "weight_norm", one)
                for _ in range(self.steps):
                    optimizer.zero_grad()
                    model(torch.ones(3, 2)).sum().backward()
                    optimizer.step()
                found = run.series("", "weight_norm").step.values.tolist()
            assert found == self._due(one), str(one)

    @classmethod
    def _all(cls) -> list[Schedule]:
        assert cls.schedules, f"{cls.__name__}.schedules names none"
        return [schedule(one) for one in cls.schedules]

    @classmethod
    def _armed(cls) -> list[Schedule]:
        return [bound(one, UNBOUND) for one in cls._all()]

    @classmethod
    def _due(cls, one: Schedule, twice: bool = False) -> list[int]:
        """Return the due steps of a schedule that is armed, and restarted after each of them."""
        armed, found = bound(one, UNBOUND), []
        for step in range(cls.steps):
            if twice:
                armed(step)
            if armed(step):
                found.append(step)
                restart(armed)
        return found
