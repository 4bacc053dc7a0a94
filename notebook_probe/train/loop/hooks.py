"""Hooks of a loop: functions that it calls, ordered by priority, and when they are due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeAlias

from notebook_probe.checks import is_number
from notebook_probe.errors import DuplicateNameError, HookError
from notebook_probe.run.run import Run
from notebook_probe.schedules import UNKNOWN, Schedule, Span, bound, is_owed, restart
from notebook_probe.train.metrics.averages import Value

__all__ = ["Hook", "HookedLoop", "Hooks", "LoopHooks", "OnStep", "Periodic"]

OnStep: TypeAlias = Callable[[Any, Mapping[str, Value]], Any]
"""A function of a loop and the metrics of a step."""


class HookedLoop(Protocol):
    """Interface of a loop for the hooks of this package.

    `Loop`, which imports this module, is one.
    """

    @property
    def loop_step(self) -> int: ...
    @property
    def start_step(self) -> int: ...
    @property
    def end_step(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def last_metrics(self) -> Mapping[str, Value]: ...
    @property
    def run(self) -> Run | None: ...
    def stop(self, reason: str = "") -> None: ...


@dataclass(eq=False, slots=True)
class Hook:
    """One function in a loop; `remove` takes effect at once."""

    call: Callable[..., Any]
    name: str
    priority: float
    removed: bool = field(default=False, init=False)
    others: tuple[Hook, ...] = field(default=(), init=False)
    """Hooks of other kinds for the same object."""

    def remove(self) -> None:
        """Stop calling it."""
        self.removed = True
        for other in self.others:
            other.remove()


class Hooks:
    """Hooks of one kind: lower priority first, then in the order in which they were added.

    An added hook acts from the next round on, a removed one stops at once.

    Parameters
    ----------
    kind : str
        Named in errors.

    Examples
    --------
    >>> hooks = Hooks("on_step")
    >>> _, first = hooks.add(print, "second", 1), hooks.add(lambda text: print(text.upper()))
    >>> hooks("a step")
    A STEP
    a step
    >>> first.remove()
    >>> hooks("another")
    another
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._hooks: tuple[Hook, ...] = ()

    def add(self, call: Callable[..., Any], name: str = "", priority: float = 0) -> Hook:
        """Call a function from the next round on.

        Raises
        ------
        TypeError
            For what is no function, and a priority that is no number.
        """
        if not callable(call):
            raise TypeError(f"{self.kind}({call!r}): a function is expected")
        if not is_number(priority):
            raise TypeError(f"{self.kind}(priority={priority!r}): a number is expected")
        name = name or getattr(call, "__name__", type(call).__name__)
        hook = Hook(call, name, priority)
        kept = [kept for kept in self._hooks if not kept.removed]
        # A new tuple, so that a round that is under way ends with the old one.
        self._hooks = tuple(sorted([*kept, hook], key=lambda hook: hook.priority))
        return hook

    def __len__(self) -> int:
        return sum(not hook.removed for hook in self._hooks)

    def __call__(self, *args: Any) -> None:
        """Call them one after another; an error stops the rest.

        Raises
        ------
        HookError
            The hook raised; the error names its kind and its name, and has the hook's error as
            cause.
        """
        for hook in self._hooks:
            if not hook.removed:
                try:
                    hook.call(*args)
                except Exception as error:
                    raise self._named(hook, error) from error

    def call_each(self, *args: Any) -> None:
        """Call every hook, even after errors; then raise the first error."""
        first: HookError | None = None
        for hook in self._hooks:
            try:
                if not hook.removed:
                    hook.call(*args)
            except Exception as error:
                found = self._named(hook, error)
                found.__cause__ = error
                first = first or found
        if first is not None:
            raise first

    def _named(self, hook: Hook, error: Exception) -> HookError:
        return HookError(f"{self.kind} hook {hook.name!r}: {type(error).__name__}: {error}")


class Periodic:
    """Callback that runs ``call(loop, metrics)`` at the due counts of updates of a loop.

    Parameters
    ----------
    schedule : Schedule
        Armed again as each run of the loop begins, and given the end as more is known of it.
    call : callable
    call_on_end : bool
        Call it once more when the loop has ended, even after a call at the last step.
    first : int
        Count of the first step: 1 counts the updates completed, 0 numbers steps as `loop_step`.
    """

    def __init__(
        self,
        schedule: Schedule,
        call: OnStep,
        call_on_end: bool = False,
        first: int = 1,
    ) -> None:
        if not callable(call):
            raise TypeError(f"{call!r}: a function (loop, metrics) is expected")
        self._schedule, self._call, self._on_end = schedule, call, call_on_end
        self._first, self._span = first, Span()
        self._armed = bound(schedule, self._span)

    @property
    def name(self) -> str:
        """Name of the function, for errors; empty without one."""
        return getattr(self._call, "__name__", "")

    def on_start(self, loop: HookedLoop, data: Any) -> None:
        """Start a run of the loop."""
        start = loop.start_step + self._first
        self._span = Span(start, seen_from=start).until(self._end_of(loop))
        self._armed = bound(self._schedule, self._span)

    def on_step(self, loop: HookedLoop, metrics: Mapping[str, Value]) -> None:
        """Handle a complete step."""
        count, end = loop.loop_step + self._first, self._end_of(loop)
        if end != self._span.end:
            self._span = self._span.until(end, since=count)
            self._armed = bound(self._armed, self._span)
        if self._armed(count):
            self._call(loop, metrics)
            restart(self._armed)

    def on_end(self, loop: HookedLoop, metrics: Mapping[str, Value] | None) -> None:
        """Finish: for a length that was unknown, one call may be owed."""
        last = loop.loop_step - 1 + self._first
        if metrics is None:
            return
        if self._on_end or is_owed(self._armed, self._span, last):
            self._call(loop, metrics)

    def _end_of(self, loop: HookedLoop) -> int:
        return UNKNOWN if loop.end_step == UNKNOWN else loop.end_step + self._first


class LoopHooks:
    """Hooks at the start of a run of a loop, after each step, at its end, and at its close."""

    def __init__(self) -> None:
        self.on_start, self.on_epoch = Hooks("on_start"), Hooks("on_epoch")
        self.on_step, self.on_eval = Hooks("on_step"), Hooks("on_eval")
        self.on_end, self.on_close = Hooks("on_end"), Hooks("on_close")
        self.objects: dict[str, Any] = {}
        self._added: list[Any] = []

    def at(self, periodic: Periodic, name: str, priority: float) -> Hook:
        """Add a periodic callback; the hook removes all of it."""
        name = name or periodic.name
        started = self.on_start.add(periodic.on_start, name, priority)
        stepped = self.on_step.add(periodic.on_step, name, priority)
        stepped.others = (started, self.on_end.add(periodic.on_end, name, priority))
        return stepped

    def add(self, callback: Any) -> Any:
        """Add the methods of an object that are named like a kind of hook, and its state."""
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

    def check_added(self) -> None:
        """Refuse two of a kind of which a loop can have one."""
        kinds = [type(one) for one in self._added if getattr(one, "only_one", False)]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(
                    f"{kinds.count(kind)} of {kind.__name__} were added to this loop; allowed: one"
                )

    def register_state(self, name: str, one: Any) -> None:
        """Add an object's state to every checkpoint."""
        if not _has_state(one):
            raise TypeError(
                f"register_state({name!r}, {type(one).__name__}): an object with state_dict() and "
                f"load_state_dict(state) is expected"
            )
        if self.objects.get(name, one) is not one:
            raise DuplicateNameError(f"register_state({name!r}): another object has this name")
        self.objects[name] = one

    @property
    def _every(self) -> tuple[Hooks, ...]:
        return (
            *(self.on_start, self.on_epoch, self.on_step),
            *(self.on_eval, self.on_end, self.on_close),
        )


def _has_state(one: Any) -> bool:
    return all(callable(getattr(one, name, None)) for name in ("state_dict", "load_state_dict"))


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, with the first free number if it is taken: the same in every process."""
    names = (name if n == 1 else f"{name}-{n}" for n in count(1))
    return next(name for name in names if name not in taken)
