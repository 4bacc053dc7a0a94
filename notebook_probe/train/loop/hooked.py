"""Who takes part in a loop, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from notebook_probe.errors import DuplicateNameError
from notebook_probe.schedules import Every, Geometric, ScheduleLike, Seconds, Times
from notebook_probe.schedules import schedule as read_schedule
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.hooks import Hook, Hooks
from notebook_probe.train.loop.periodic import Periodic
from notebook_probe.train.metrics.averages import Value

__all__ = ["Hooked"]

OnStep: TypeAlias = Callable[[Any, Mapping[str, Value]], Any]


class Hooked:
    """Has hooks where a run of a loop starts, after each step, where it ends, and at its close."""

    def __init__(self) -> None:
        self._on_start, self._on_epoch = Hooks("on_start"), Hooks("on_epoch")
        self._on_step, self._on_eval = Hooks("on_step"), Hooks("on_eval")
        self._on_end, self._on_close = Hooks("on_end"), Hooks("on_close")
        self.objects: dict[str, Any] = {}
        self._added: list[Any] = []

    def on_start(
        self, call: Callable[[Any, Dataset], Any], name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``call(loop, data)`` as each run of the loop begins."""
        return self._on_start.add(call, name, priority)

    def on_epoch(self, call: Callable[[Any], Any], name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop)`` after each epoch: ``loop.epoch`` epochs are complete.

        Such as ``lambda loop: sampler.set_epoch(loop.epoch)`` of a distributed sampler.
        """
        return self._on_epoch.add(call, name, priority)

    def on_step(
        self, call: Callable[[Any, Mapping[str, Value]], Any], name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``call(loop, metrics)`` after each step.

        Lower priorities come first, negative ones too, then whoever came first. An error ends the
        training; it names the hook.
        """
        return self._on_step.add(call, name, priority)

    def on_eval(
        self,
        call: Callable[[Any, Mapping[str, float]], Any],
        name: str = "",
        priority: float = 0,
    ) -> Hook:
        """Call ``call(loop, metrics)`` after each evaluation, with the names that are recorded."""
        return self._on_eval.add(call, name, priority)

    def on_end(
        self,
        call: Callable[[Any, Mapping[str, Value] | None], Any],
        name: str = "",
        priority: float = 0,
    ) -> Hook:
        """Call ``call(loop, metrics)`` when all steps are done; metrics are None without any."""
        return self._on_end.add(call, name, priority)

    def on_close(self, call: Callable[[Any], Any], name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop)`` however the run of the loop ends, also when others raise."""
        return self._on_close.add(call, name, priority)

    def at(
        self,
        schedule: ScheduleLike,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
    ) -> Hook:
        """Call ``call(loop, metrics)`` after each step at which a schedule is due.

        Parameters
        ----------
        schedule : Schedule, str, int or callable
            Any that probes take: ``"geometric(100, 1.2)"``, ``nbp.Times(20)``.
        call_on_end : bool
            Call it once more when all steps are done.

        Raises
        ------
        ScheduleError, TypeError
        """
        periodic = Periodic(read_schedule(schedule), call, call_on_end)
        name = name or getattr(call, "__name__", "")
        started = self._on_start.add(periodic.on_start, name, priority)
        stepped = self._on_step.add(periodic.on_step, name, priority)
        stepped.others = (started, self._on_end.add(periodic.on_end, name, priority))
        return stepped

    def every_n_steps(self, n: int, call: OnStep, name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop, metrics)`` after steps n - 1, 2n - 1, ..., counted over all runs.

        Raises
        ------
        ScheduleError
            ``n`` is less than 1.
        """
        return self.at(Every(n, offset=n - 1), call, name, priority)

    def n_times_during_loop(
        self, n: int, call: OnStep, name: str = "", priority: float = 0
    ) -> Hook:
        """Call it ``n`` times in each run of the loop, evenly, the last step being one of them.

        While nobody knows how long the run is, after 128, 256, 512, ... steps; see `Times`.
        """
        return self.at(Times(n), call, name, priority)

    def exponential_callback(
        self,
        start: int,
        factor: float,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
    ) -> Hook:
        """Call it ever more rarely, counted over all runs; see `Geometric`."""
        return self.at(Geometric(start, factor), call, name, priority, call_on_end)

    def periodic_callback(
        self,
        period: float,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> Hook:
        """Call it when so many seconds have passed since it was called last; see `Seconds`."""
        return self.at(Seconds(period, clock), call, name, priority, call_on_end)

    def add(self, callback: Any) -> Any:
        """Have an object take part by its methods of these names; returns the object.

        ``on_start``, ``on_epoch``, ``on_step``, ``on_eval``, ``on_end``, ``on_close``; its ``name``
        and ``priority`` hold for all of them. With ``state_dict`` and ``load_state_dict`` its state
        is in checkpoints. One with ``only_one = True`` is refused beside another of its class, as
        the loop begins to run.

        Raises
        ------
        TypeError
            It has none of them.
        """
        methods = {hooks: getattr(callback, hooks.kind, None) for hooks in self._every}
        if isinstance(callback, type) or not any(map(callable, methods.values())):
            raise TypeError(
                f"add({callback!r}): an object with one of the methods "
                f"{', '.join(hooks.kind for hooks in methods)} is expected"
            )
        name = str(getattr(callback, "name", "") or type(callback).__name__)
        for hooks, method in methods.items():
            if callable(method):
                hooks.add(method, name, getattr(callback, "priority", 0))
        if _has_state(callback):
            self.register_state(_free(name, self.objects), callback)
        self._added.append(callback)
        return callback

    def _check_added(self) -> None:
        """Refuse two of a kind of which a loop can have one."""
        kinds = [type(one) for one in self._added if getattr(one, "only_one", False)]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(
                    f"{kinds.count(kind)} of {kind.__name__} were added to this loop; allowed: one"
                )

    @property
    def _every(self) -> tuple[Hooks, ...]:
        return (
            *(self._on_start, self._on_epoch, self._on_step),
            *(self._on_eval, self._on_end, self._on_close),
        )

    def register_state(self, name: str, one: Any) -> None:
        """Have an object's state in every checkpoint: weights that are averaged, an optimizer.

        Raises
        ------
        TypeError
            It has no ``state_dict`` and ``load_state_dict``.
        DuplicateNameError
            Another object has the name.
        """
        if not _has_state(one):
            raise TypeError(
                f"register_state({name!r}, {type(one).__name__}): an object with state_dict() and "
                f"load_state_dict(state) is expected"
            )
        if self.objects.get(name, one) is not one:
            raise DuplicateNameError(f"register_state({name!r}): another object has this name")
        self.objects[name] = one


def _has_state(one: Any) -> bool:
    return all(callable(getattr(one, name, None)) for name in ("state_dict", "load_state_dict"))


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name, or with a number the first that is free: the same in every process."""
    names = (name if n == 1 else f"{name}-{n}" for n in count(1))
    return next(name for name in names if name not in taken)
