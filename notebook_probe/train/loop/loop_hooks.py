"""Hooks of a loop by kind, the callbacks added to it, and the objects in its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from notebook_probe.errors import DuplicateNameError
from notebook_probe.train.loop.hooks import Hook, Hooks
from notebook_probe.train.loop.periodic import Periodic

__all__ = ["LoopHooks"]


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
