"""Who takes part in a loop, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from notebook_probe.schedules import Every
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.hooks import Hook, Hooks
from notebook_probe.train.metrics.averages import Value

__all__ = ["Hooked"]


class Hooked:
    """Has hooks where a run of a loop starts, after each step, where it ends, and at its close."""

    def __init__(self) -> None:
        self._on_start, self._on_epoch = Hooks("on_start"), Hooks("on_epoch")
        self._on_step, self._on_eval = Hooks("on_step"), Hooks("on_eval")
        self._on_end, self._on_close = Hooks("on_end"), Hooks("on_close")

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

    def every_n_steps(
        self,
        n: int,
        call: Callable[[Any, Mapping[str, Value]], Any],
        name: str = "",
        priority: float = 0,
    ) -> Hook:
        """Call ``call(loop, metrics)`` after steps n - 1, 2n - 1, ..., counted over all runs.

        Raises
        ------
        ScheduleError
            ``n`` is less than 1.
        """
        due = Every(n, offset=n - 1)

        def when_due(loop: Any, metrics: Mapping[str, Value]) -> None:
            if due(loop.loop_step):
                call(loop, metrics)

        return self.on_step(when_due, name or getattr(call, "__name__", ""), priority)

    def add(self, callback: Any) -> Any:
        """Have an object take part by its methods of these names; returns the object.

        ``on_start``, ``on_epoch``, ``on_step``, ``on_eval``, ``on_end``, ``on_close``; its ``name``
        and ``priority`` hold for all of them.

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
        return callback

    @property
    def _every(self) -> tuple[Hooks, ...]:
        return (
            *(self._on_start, self._on_epoch, self._on_step),
            *(self._on_eval, self._on_end, self._on_close),
        )
