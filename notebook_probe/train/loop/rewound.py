"""A loop that goes back to a step and trains on from there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

from notebook_probe.run.run import Run
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.checkpointed import Checkpointed
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.rewind import Replayed, rewind
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Plan", "Rewound"]


class Plan(NamedTuple):
    """What a run of a loop is to do."""

    end_of: Callable[[Dataset], int]
    """One past the last step, -1 where nobody knows."""
    train: Callable[[Dataset], None]


class Rewound(Checkpointed):
    """Goes back to steps that were trained before.

    Attributes
    ----------
    replaying : bool
        Such steps are trained again now, to get back to one of them.
    """

    end_step: int
    epoch: int
    _stopping: bool

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        self.replaying = False
        self._last_data: Dataset | None = None

    def rewind(self, step: int, data: Any = None, **options: Any) -> Run | None:
        """Go back to a step that was trained, to look closer from there on.

        The newest checkpoint at or before it is loaded, and the steps from there on are trained
        again, without being recorded twice: every number is equal bit for bit, which the recorded
        ``loss`` is compared for. Then the training stands before ``step``, and whatever runs the
        loop next goes on there, as a branch of the record.

        Hooks are called as steps are trained again, as they may have changed the training, and
        ``replaying`` is True meanwhile. What `Run.set` has set on the way is set again at the same
        steps; the knobs of the run, of which no checkpoint knows, begin as they were there, and are
        those of the branch.

        Parameters
        ----------
        step : int
            Updates completed at the state to go back to.
        data : iterable, optional
            What was trained on; by default what the last run of the loop was given.
        **options
            Of `notebook_probe.watch`, for the branch: ``probes={"*": ["grad_norm", "rms"]}``.

        Returns
        -------
        Run or None
            What records the branch; None where nothing was recorded before.

        Raises
        ------
        CheckpointError
            There is no checkpoint at or before the step, of those that this training went through.
        ValueError
            For a step that was not reached; options for a record where there is none.
        RuntimeError
            The loop runs.

        Warns
        -----
        ReplayWarning
            A loss came out otherwise than it was recorded, and from which step on; something could
            not be set again.

        Examples
        --------
        >>> run = loop.rewind(900, probes=["default", "activations"])  # doctest: +SKIP
        >>> loop.run_epochs(loader, 10)  # doctest: +SKIP
        """
        self._check_idle()
        data = self._last_data if data is None else data
        if data is None:
            raise ValueError(f"rewind({step}): the loop has not run yet; give it the data")
        return rewind(cast(Replayed, self), data, step, options)

    def replay(self, data: Iterable[Any], step: int, at_boundary: Callable[[int], None]) -> None:
        """Train the steps up to ``step`` again, over epochs as they come; what `rewind` does.

        Before each of them ``at_boundary`` is called with its number, at the end of an epoch twice.
        It ends as a stop does, without `on_end`: the training stands before ``step``.
        """
        begun = self._begin(data)
        self.replaying = True
        try:
            self._run(begun, Plan(lambda data: step, partial(self._to_step, at_boundary)))
        finally:
            self.replaying = False
        self.load_state_dict(self.state_dict())  # so that the next run of the loop goes on here

    def _to_step(self, at_boundary: Callable[[int], None], data: Dataset) -> None:
        was_empty = False
        while not self._stopping:
            batches, before = self._batches(data), self.loop_step
            while self._steps_again(batches, at_boundary):
                if self._stopping:
                    return
            if self.loop_step == self.end_step:
                self.stop()
                return
            is_empty = self.loop_step == before  # once it may be: at the end of an epoch
            if is_empty and was_empty:
                raise RuntimeError(f"data {data.name!r} is empty before step {self.end_step}")
            was_empty = is_empty
            data.reset()
            self.epoch += 1
            self._on_epoch(self)

    def _steps_again(self, batches: Iterator[Batch], at_boundary: Callable[[int], None]) -> bool:
        if self.loop_step == self.end_step:
            return False
        at_boundary(self.loop_step)
        return self._step(batches)

    # ---------------------------------------------------------------- of the loop

    @abstractmethod
    def stop(self, reason: str = "") -> None: ...
    @abstractmethod
    def state_dict(self) -> dict[str, Any]: ...
    @abstractmethod
    def load_state_dict(self, state: Any) -> None: ...
    @abstractmethod
    def _step(self, batches: Iterator[Batch]) -> bool: ...
    @abstractmethod
    def _batches(self, data: Dataset) -> Iterator[Batch]: ...
    @abstractmethod
    def _begin(self, given: Iterable[Any]) -> Dataset: ...
    @abstractmethod
    def _run(self, data: Dataset, plan: Plan) -> dict[str, Value] | None: ...
