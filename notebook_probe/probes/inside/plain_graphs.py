"""Graphs that were compiled without hooks, and may not run where a run reads in its graphs.

Dynamo has no guards on missing hooks: the graph of an unwatched model would be used for a
watched one of its class, and that of earlier steps for later ones. So each such graph gets one
guard more. Nothing is left on a model.

The guard has Dynamo compile the code once more. If that graph knows of no hook either, there is
nothing to read in it, as in a function that torch transforms: then it runs until the readings
change, for it would be compiled at every step.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch import nn
from torch._C._dynamo import eval_frame
from torch._dynamo import convert_frame, guards

from notebook_probe.probes.inside.handing import keepers
from notebook_probe.probes.inside.traced import TRACED

__all__ = ["guard_plain_graphs", "look_again"]

OF_FORWARD = "L['self']"
"""Source of the module whose forward a graph is."""

_known: weakref.WeakSet[Any] = weakref.WeakSet()
"""Guards of graphs that were looked at."""


_refused: dict[int, CodeType] = {}
"""Code of which a graph was refused, so that Dynamo compiles it for readings; by identity, as code
is equal to other code of the same lines."""
_unreadable: dict[int, CodeType] = {}
"""Code that was compiled for readings, and has none."""


def guard_plain_graphs() -> int:
    """Guard all graphs that know of no hook; return how many have become guarded."""
    try:
        found = [(code, root, _knows_hooks(root)) for code, root in _new()]
        for code in (code for code, _, knows_hooks in found if knows_hooks):
            _refused.pop(id(code), None)
        return sum(_guard(code, root) for code, root, knows_hooks in found if not knows_hooks)
    except (AttributeError, TypeError, RuntimeError):  # of parts of Dynamo that are not public
        return 0


def look_again() -> None:
    """Compile all code for readings again where they have changed: some may have readings now."""
    _refused.clear()
    _unreadable.clear()


def _new() -> Iterator[tuple[CodeType, Any]]:
    """Yield code and guards of all graphs that were compiled since the last call."""
    for reference in convert_frame.input_codes.seen:
        if (code := reference()) is None:
            continue
        for entry in eval_frame._debug_get_cache_entry_list(code):
            manager = entry.guard_manager
            # One that is invalid already is of another type.
            if type(manager) is guards.GuardManagerWrapper and manager not in _known:
                _known.add(manager)
                yield code, manager.root


def _guard(code: CodeType, root: Any) -> bool:
    modules = [*_outermost_modules(root)]
    if id(code) in _refused:
        _unreadable[id(code)] = code
    for manager in modules:
        # The hooks of the module itself run outside of its forward.
        is_forward = code.co_name == "forward" and manager.get_source() == OF_FORWARD
        may_run = _MayRunPlain(code, is_forward)
        manager.add_lambda_guard(may_run, ["no run of notebook_probe reads there"], None)
    return bool(modules)


def _outermost_modules(manager: Any) -> Iterator[Any]:
    """Yield the guards of modules that are no registered children of others."""
    for child in _children(manager):
        kind = child.get_type_of_guarded_value()
        if isinstance(kind, type) and issubclass(kind, nn.Module):
            yield child
        if not child.get_source().endswith("._modules"):
            yield from _outermost_modules(child)


def _knows_hooks(root: Any) -> bool:
    """Return whether a hook of ours was traced into a graph: its guards say what it reads."""
    waiting = [root]
    while waiting:
        manager = waiting.pop()
        if manager.get_type_of_guarded_value() in TRACED:
            return True
        waiting += _children(manager)
    return False


def _children(manager: Any) -> Iterator[Any]:
    yield from manager.get_child_managers()
    # Those of a dict's keys and values are kept elsewhere.
    if hasattr(manager, "get_key_value_managers"):
        for pair in manager.get_key_value_managers().values():
            yield from (one for one in pair if one is not None)


class _MayRunPlain:
    """Test whether a graph that reads nothing may run for a module now.

    Parameters
    ----------
    code : CodeType
        Held weakly.
    is_forward : bool
        True if it is the forward of the module, which cannot read the module itself.
    """

    __slots__ = ("_code", "_is_forward")

    def __init__(self, code: CodeType, is_forward: bool) -> None:
        self._code, self._is_forward = weakref.ref(code), is_forward

    def __call__(self, module: nn.Module) -> bool:
        try:
            code, parts = self._code(), [*module.children()] if self._is_forward else [module]
            reads = any(keeper.reads_in(one) for keeper in [*keepers.values()] for one in parts)
            if not reads or code is None or id(code) in _unreadable:
                return True
            _refused[id(code)] = code
        except Exception:  # training must survive any kind of module
            return True
        return False
