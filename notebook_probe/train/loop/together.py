"""Several loops that train step by step in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from notebook_probe.errors import TrainingStopped
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.generators import generator_states, set_generators
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.loop.runner import LoopPlan

__all__ = ["Turn", "run_together"]


class Turn(NamedTuple):
    """A loop that trains in turns with others.

    Parameters
    ----------
    loop : Loop
    data : iterable
    end : int or None
        The step to train to; None is without end.
    name : str
        Name of the loop in errors.
    """

    loop: Loop
    data: Iterable[Any]
    end: int | None
    name: str = "a loop"


class _Taken:
    """A loop whose turn may come, with separate random generators.

    Attributes
    ----------
    error : Exception or None
        Error that has ended the loop, while others train on.
    """

    def __init__(self, turn: Turn, data: Dataset) -> None:
        self._turn, self._data = turn, data
        self._batches = self._drawn(turn.loop._runner.batches(data))
        self._generators = generator_states()
        self._has_data = True
        self.error: Exception | None = None

    @property
    def is_over(self) -> bool:
        end, loop = self._turn.end, self._turn.loop
        is_done = end is not None and loop.loop_step >= end
        return loop._runner.stopping or is_done or self.error is not None

    @property
    def told(self) -> str:
        """Error that ended the loop, as text."""
        error = self.error
        at = f"at step {self._turn.loop.loop_step}"
        return f"{self._turn.name} ended {at} by {type(error).__name__}: {error}"

    def step(self) -> None:
        loop = self._turn.loop
        if not loop._runner.step(self._batches):
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
        except Exception as error:
            if not self._has_data:  # of others neither, as they read the same
                raise
            self.error = error
        finally:
            self._generators = generator_states()

    def _drawn(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches, and note if they are what failed."""
        try:
            yield from batches
        except Exception:
            self._has_data = False
            raise

    def close(self) -> None:
        close = getattr(self._turn.data, "close", None)
        if callable(close):
            close()


def run_together(turns: Sequence[Turn]) -> None:
    """Train one step of each loop after the other, each to its own end.

    Every loop begins, counts, stops and ends as it would alone, and draws the random numbers that
    it would draw alone. One that is done waits for the others before its run of the loop ends; its
    data is closed, if that can be. An error in a step of one ends that one alone; an error of the
    data, one before the first step, and an interrupt end all.

    Parameters
    ----------
    turns : sequence of Turn

    Raises
    ------
    Exception
        The first error of a step, once the others are done, with a note of every loop that failed.
    """
    for turn in turns:
        turn.loop._runner.takes_turns = len(turns) > 1
    failed: list[_Taken] = []
    if turns:
        _begin(turns, [], failed)
    if failed:
        raise _first_error(failed)


def _begin(turns: Sequence[Turn], taken: list[_Taken], failed: list[_Taken]) -> None:
    """Start one loop within the previous one, so that each of them ends, even after an error."""
    if len(taken) == len(turns):
        _go_round(taken, failed)
        return
    turn = turns[len(taken)]
    end = -1 if turn.end is None else turn.end

    def train(data: Dataset) -> None:
        mine = _Taken(turn, data)
        _begin(turns, [*taken, mine], failed)
        if mine.error is not None:  # ends this loop as it would end it alone
            raise mine.error

    try:
        data = turn.loop._runner.begin(turn.data)
        turn.loop._rewinding.run_on(data, LoopPlan(lambda data: end, train))
    except Exception as error:
        if not any(error is one.error for one in failed):
            raise


def _first_error(failed: Sequence[_Taken]) -> Exception:
    """Return the first error, with the names of all that failed."""
    first = failed[0].error
    assert first is not None
    for one in failed:
        first.add_note(f"{one.told}; the others trained on")
    return first


def _go_round(taken: Sequence[_Taken], failed: list[_Taken]) -> None:
    alone = len(taken) == 1
    active = [one for one in taken if not one.is_over]
    while active:
        for one in active:
            one.step() if alone else one.step_between_others()
        for one in active:
            if one.is_over:
                one.close()
                failed += [one] if one.error is not None else []
        active = [one for one in active if not one.is_over]
