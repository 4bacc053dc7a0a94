"""Functions that a loop calls, ordered by priority."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.checks import is_number
from notebook_probe.errors import HookError

__all__ = ["Hook", "Hooks"]


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
        """Call it no more."""
        self.removed = True
        for other in self.others:
            other.remove()


class Hooks:
    """Hooks of one kind: lower priority first, then in the order in which they were added.

    What is added acts from the next round on, what is removed at once.

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
            Of kind and name, with the hook's own error as its cause.
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
