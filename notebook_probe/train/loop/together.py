"""Several loops that train step by step in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from notebook_probe.errors import TrainingStopped
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.generators import generator_states, set_generators
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.loop.rewound import Plan

__all__ = ["Turn", "run_together"]


class Turn(NamedTuple):
    """A loop that trains beside others.

    Parameters
    ----------
    loop : Loop
    data : iterable
    end : int or None
        The step to train to; None is without end.
    """

    loop: Loop
    data: Iterable[Any]
    end: int | None


class _Taken:
    """A loop while its turn may come, with random generators of its own."""

    def __init__(self, turn: Turn, data: Dataset) -> None:
        self._turn, self._data = turn, data
        self._batches = turn.loop._batches(data)
        self._generators = generator_states()

    @property
    def is_over(self) -> bool:
        end, loop = self._turn.end, self._turn.loop
        return loop._stopping or (end is not None and loop.loop_step >= end)

    def step(self) -> None:
        loop = self._turn.loop
        if not loop._step(self._batches):
            raise RuntimeError(
                f"{loop.loop_step - loop.start_step} steps done: data {self._data.name!r} ended"
            )

    def step_between_others(self) -> None:
        """Train a step as if it were alone in the process."""
        set_generators(self._generators)
        try:
            self.step()
        except TrainingStopped:  # which is meant for this one
            self._turn.loop.stop()
        finally:
            self._generators = generator_states()

    def close(self) -> None:
        close = getattr(self._turn.data, "close", None)
        if callable(close):
            close()


def run_together(turns: Sequence[Turn]) -> None:
    """Train one step of each loop after the other, each to its own end.

    Every loop begins, counts, stops and ends as it would alone, and draws the random numbers that
    it would draw alone. One that is done waits for the others before its run of the loop ends; its
    data is closed, if that can be. An error ends all.

    Parameters
    ----------
    turns : sequence of Turn
    """
    for turn in turns:
        turn.loop._takes_turns = len(turns) > 1
    if turns:
        _begin(turns, [])


def _begin(turns: Sequence[Turn], taken: list[_Taken]) -> None:
    """Begin one loop within the one before, so that each of them ends, whatever happens."""
    if len(taken) == len(turns):
        _go_round(taken)
        return
    turn = turns[len(taken)]
    end = -1 if turn.end is None else turn.end

    def train(data: Dataset) -> None:
        _begin(turns, [*taken, _Taken(turn, data)])

    turn.loop._run_on(turn.loop._begin(turn.data), Plan(lambda data: end, train))


def _go_round(taken: Sequence[_Taken]) -> None:
    alone = len(taken) == 1
    active = [one for one in taken if not one.is_over]
    while active:
        for one in active:
            one.step() if alone else one.step_between_others()
        for one in active:
            if one.is_over:
                one.close()
        active = [one for one in active if not one.is_over]
