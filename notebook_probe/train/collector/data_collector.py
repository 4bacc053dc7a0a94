"""A collector of series that a model or a loop names, exact and bounded."""

from __future__ import annotations

import math
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self, get_args
from uuid import UUID, uuid4

import torch
from torch import Tensor, nn

from notebook_probe.probes.step.forks import silence_in_children
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.run.begin.earlier import run_of
from notebook_probe.train.collector.attachment import CollectorAttachment
from notebook_probe.train.collector.collected import CollectedSeries
from notebook_probe.train.collector.executor import OpenSteps, Step
from notebook_probe.train.collector.mirror import CollectorMirror
from notebook_probe.train.collector.number import read_number
from notebook_probe.train.collector.policies import in_words, read_policy
from notebook_probe.train.collector.recomputation import is_recomputed
from notebook_probe.train.collector.saved import Saved
from notebook_probe.train.collector.series import Collected
from notebook_probe.train.collector.targets import (
    Found,
    HasTrainer,
    Target,
    side_of,
    side_of_loop,
    steps_of,
)

__all__ = ["DataCollector"]

OUTSIDE = "outside of a step"


class DataCollector:
    """Store numbers that a model or a loop names, as series of 64-bit floats with their steps.

    Set one policy, attach the collector to an object that runs steps, and call `collect` inside.
    Numbers of a step are kept when it is complete; numbers of a step that fails are dropped. Any
    number of collectors can be attached to one target, and each has only its numbers. It is safe to
    read, attach and collect from any thread.

    A run that watches the model also records all numbers of training steps, in float32, the mean of
    several in one step. If the loop or another collector has a series of the same name, the series
    is called ``x_2`` there, with one warning.

    Attributes
    ----------
    uuid : UUID
        Identity of the collector; a copy has another.
    missing : dict of str to int
        Missing numbers, by the reason: ``"outside of a step"`` of the target, such as
        in an evaluation; ``"no gradient"``.

    Examples
    --------
    >>> class Net(nn.Linear):
    ...     def forward(self, x):
    ...         collector.collect(x.mean(), "input")
    ...         return super().forward(x)
    >>> collector = DataCollector().keep_n_points(3)
    >>> model = Net(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> handle = collector.attach_to_executor(model)
    >>> for value in range(6):
    ...     model(torch.full((4, 2), value / 2)).sum().backward()
    ...     optimizer.step()
    >>> collector.get_series_steps("input"), collector.get_series_values("input")
    ([0, 4], [0.0, 2.0])
    >>> handle.remove()
    """

    def __init__(self) -> None:
        self.uuid: UUID = uuid4()
        self.is_silent = False
        """In a forked child: its parent goes on collecting."""
        self._asked: dict[str, Any] = {}
        self._collected, self._mirror = CollectedSeries(), CollectorMirror()
        self._missing: Counter[str] = Counter()
        self._steps: OpenSteps | None = None
        # A step that raises never ends; what it has collected goes with it.
        self._pending: weakref.WeakKeyDictionary[Step, list[tuple[str, Collected]]]
        self._pending = weakref.WeakKeyDictionary()
        # Reentrant: attaching first detaches from a target that was garbage collected.
        self._lock = threading.RLock()
        silence_in_children(self)

    # ---------------------------------------------------------------- policy

    def collect_all(self) -> Self:
        """Keep every value, without a bound. Returns the collector."""
        self._asked["collect_all"] = ""
        return self

    def every_n_steps(self, n: int) -> Self:
        """Keep values 0, n, 2n, … of a series, counted value by value. Returns the collector.

        Parameters
        ----------
        n : int
            Below 1 the policy is not set.
        """
        self._asked["every_n_steps"] = n
        return self

    def keep_n_points(self, n: int) -> Self:
        """Keep fewer than n values of a series, evenly spaced. Returns the collector.

        Value i is kept when it is a multiple of the stride, at first 1. When n are kept, those at
        positions 0, 2, 4, … stay, and the stride doubles: from the n-th value on there are between
        ⌈n/2⌉ and n - 1, the first value always among them.

        Parameters
        ----------
        n : int
            At least 2; below 1 the policy is not set.

        Examples
        --------
        >>> collector = DataCollector().keep_n_points(1)
        >>> collector.attach_to_executor(nn.Linear(2, 1))
        Traceback (most recent call last):
            ...
        ValueError: keep_n_points(1): fewer than one point would be kept; allowed: from 2
        """
        self._asked["keep_n_points"] = n
        return self

    CollectAll, EveryNSteps, KeepNPoints = collect_all, every_n_steps, keep_n_points

    # ---------------------------------------------------------------- attaching

    def attach_to_executor(
        self, target: Target, phase: PhaseName = "training"
    ) -> CollectorAttachment:
        """Collect numbers in the steps of ``target``, from now on.

        Parameters
        ----------
        target : nn.Module, Executor, StepFunction or trainer
            Target, by a weak reference. A step of a **module** ends with an update by the optimizer
            that has its parameters; validation passes are ignored, and a loop without an optimizer
            needs a `StepFunction`. With phase ``"eval"`` a step is a call that trains nothing; its
            number is that of completed updates. A **trainer** has a training and an evaluation;
            each of them, and any other `Executor`, defines where a step begins and ends. Steps are
            counted from the step of the run that watches the model, else from the last step of the
            collector, at first from 0.
        phase : "training" or "eval"
            Phase of a module or a trainer.

        Returns
        -------
        CollectorAttachment
            ``remove()`` detaches; collected numbers stay.

        Raises
        ------
        ValueError
            The collector is attached already, or has no policy, several, or an impossible one; or
            the phase is another.
        TypeError
            The target does not define where its steps end, such as a function without
            `StepFunction`.

        Examples
        --------
        >>> model = nn.Linear(2, 1)
        >>> collector = DataCollector().every_n_steps(10)
        >>> with collector.attach_to_executor(model):
        ...     collector.step
        0
        >>> collector
        <DataCollector every_n_steps(10): 0 series, not attached>
        """
        return self._attach(target, phase, side_of)

    def attach_to_loop(
        self, loop: HasTrainer, phase: PhaseName = "training"
    ) -> CollectorAttachment:
        """Attach to the trainer of a loop, ``loop.trainer``, and count as the loop does.

        Parameters
        ----------
        loop : object with a trainer
        phase : "training" or "eval"
            Phase of the trainer.

        Raises
        ------
        ValueError
            Same as in `attach_to_executor`.
        TypeError
            The executor has no trainer.

        Examples
        --------
        >>> collector = DataCollector().keep_n_points(1000)
        >>> handle = collector.attach_to_loop(loop)  # doctest: +SKIP
        """
        return self._attach(loop, phase, side_of_loop)

    @property
    def step(self) -> int | None:
        """Number of the step to which `collect` would now assign a value; None if there is none."""
        steps = self._steps
        step = steps.now() if steps is not None else None
        return step.number if step is not None else None

    def _attach(
        self, target: object, phase: PhaseName, find: Callable[[object, PhaseName], Found]
    ) -> CollectorAttachment:
        if phase not in get_args(PhaseName):
            raise ValueError(f"phase={phase!r}; allowed: 'training', 'eval'")
        side = find(target, phase)
        with self._lock:
            self._let_go()
            self._collected.use(read_policy(self._asked))
            self._mirror = CollectorMirror()  # the names of the last one are free
            self._steps = steps = steps_of(side, phase, self._first_step(side), self._ended)
        return CollectorAttachment(lambda: self._detach(steps), type(target).__name__)

    def _let_go(self) -> None:
        """Detach from a target that was garbage collected; raise if there is another."""
        steps = self._steps
        if steps is None:
            return
        if steps.is_alive:
            raise ValueError(
                f"{self!r}: attached already; allowed: one target at a time, after remove() of "
                f"the handle, and any number of collectors for a target"
            )
        self._detach(steps)

    def _first_step(self, side: Found) -> int:
        model = side if isinstance(side, nn.Module) else side.model
        run = run_of(model) if model is not None else None
        return run.controls.status_head().step if run is not None else self._collected.next_step

    def _detach(self, steps: OpenSteps) -> None:
        steps.close()
        with self._lock:
            if self._steps is steps:
                self._steps = None
                self._pending.clear()
                self._mirror = CollectorMirror()

    # ---------------------------------------------------------------- collecting

    def collect(self, tensor: Tensor | float, series: str) -> None:
        """Collect a number in the current step; do nothing if the collector is not attached.

        Call it in a forward, a loss, a hook of a gradient, or in the loop. A tensor is detached and
        stays on its device until many are copied at once. A forward that activation checkpointing
        repeats counts once; in a compiled forward the call breaks the graph.

        Parameters
        ----------
        tensor : Tensor or number
            Number, or tensor of one element, of any floating-point or integer type.
        series : str

        Raises
        ------
        ValueError
            The tensor does not have exactly one element.
        TypeError
            ``tensor`` is a bool, a complex number, or not a number.

        Examples
        --------
        >>> model, collector = nn.Linear(2, 1), DataCollector().collect_all()
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> handle = collector.attach_to_executor(model)
        >>> loss = model(torch.ones(4, 2)).square().mean()
        >>> collector.collect(loss, "loss")
        >>> loss.backward()
        >>> optimizer.step()
        >>> collector.get_series_values("loss") == [loss.item()]
        True
        """
        if self._steps is not None:
            self._collect(tensor, series)

    # No graph can hold its locks and its looks at the stack: compiled code calls it from outside.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _collect(self, value: Any, series: str) -> None:
        if not isinstance(series, str):
            raise TypeError(f"collect(..., {series!r}): the name of a series is expected")
        if not (self.is_silent or is_traced() or is_recomputed()):
            plain_mode(self._take, value, series)

    def _take(self, value: Any, series: str) -> None:
        number = read_number(series, value)
        steps = self._steps
        step = steps.now() if steps is not None else None
        with self._lock:
            if step is None:
                self._missing[OUTSIDE] += 1
                return
            held = self._collected.hold(number)
            self._pending.setdefault(step, []).append((series, held))
        # Named between the update and the next step: this step will not end again.
        if step.has_ended:
            self._ended(step)

    def miss(self, series: str, reason: str) -> None:
        """Store NaN for a missing number, and count the reason."""
        if self.step is not None:
            with self._lock:
                self._missing[reason] += 1
            self.collect(math.nan, series)

    def _ended(self, step: Step) -> None:
        """Store the numbers of a complete step."""
        with self._lock:
            steps, values = self._steps, self._pending.pop(step, [])
            self._collected.add(step.number, values)
        if steps is not None and values:
            self._mirror.show(steps.model, step, values)

    # ---------------------------------------------------------------- reading

    @property
    def missing(self) -> dict[str, int]:
        """Missing numbers, by the reason."""
        return dict(self._missing)

    def get_all_series_names(self) -> list[str]:
        """Names in the order of their first values."""
        return self._collected.names()

    def get_series_values(self, series: str) -> list[float]:
        """Return the stored values; empty for an unknown name."""
        return self.get_series(series)[1]

    def get_series_steps(self, series: str) -> list[int]:
        """Return the steps of the stored values; empty for an unknown name."""
        return self.get_series(series)[0]

    def get_series(self, series: str) -> tuple[list[int], list[float]]:
        """Return steps and values of the same moment, also during collection."""
        return self._collected.read(series)

    def state_dict(self) -> dict[str, Any]:
        """Return all collected data, which ``torch.load(..., weights_only=True)`` can read.

        Examples
        --------
        >>> DataCollector().state_dict()
        {'policy': {}, 'next_step': 0, 'series': {}}
        """
        return self._collected.save()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the contents by a saved state, and continue as if never interrupted.

        Raises
        ------
        ValueError
            ``state`` is not a state, or was collected by another policy than is set.
        """
        saved = Saved.read(state)
        asked = {} if saved.policy is None else saved.policy.asked
        if asked and self._asked and read_policy(self._asked) != saved.policy:
            raise ValueError(
                f"load_state_dict: kept by {in_words(asked)}, but the collector has "
                f"{in_words(self._asked)}; allowed: the same policy, or none set"
            )
        with self._lock:
            self._asked |= asked
            self._collected.restore(saved)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which has the series and is attached to nothing."""
        return {"asked": dict(self._asked), "missing": self.missing, **self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DataCollector.__init__(self)
        self._asked.update(state["asked"])
        self._missing.update(state["missing"])
        self._collected.restore(Saved.read(state))

    def __repr__(self) -> str:
        steps, n = self._steps, len(self.get_all_series_names())
        asked = in_words(self._asked) or "no policy"
        where = "attached" if steps is not None and steps.is_alive else "not attached"
        missing = "".join(f", {n} {reason}" for reason, n in self._missing.items())
        return f"<DataCollector {asked}: {n} series, {where}{missing}>"
