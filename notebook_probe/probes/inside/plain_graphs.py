"""Graphs that were compiled without hooks, and may not run where a run reads in its graphs.

Dynamo has no guards on missing hooks: the graph of an unwatched model would be used for a
watched one of its class, and that of earlier steps for later ones. So each such graph gets one
guard more. Nothing is left on a model.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch._C._dynamo import eval_frame
from torch._dynamo import convert_frame, guards

from notebook_probe.probes.inside.handing import keepers
from notebook_probe.probes.inside.traced import TRACED

__all__ = ["guard_plain_graphs"]

_known: weakref.WeakSet[Any] = weakref.WeakSet()
"""Guards of graphs that were looked at."""


def guard_plain_graphs() -> int:
    """Guard all graphs that know of no hook; return how many have become guarded."""
    try:
        return sum(map(_guard, _new()))
    except (AttributeError, TypeError, RuntimeError):  # of parts of Dynamo that are not public
        return 0


def _new() -> Iterator[Any]:
    """Yield the guards of all graphs that were compiled since the last call."""
    for reference in convert_frame.input_codes.seen:
        code = reference()
        for entry in eval_frame._debug_get_cache_entry_list(code) if code is not None else ():
            manager = entry.guard_manager
            # One that is invalid already is of another type.
            if type(manager) is guards.GuardManagerWrapper and manager not in _known:
                _known.add(manager)
                yield manager.root


def _guard(root: Any) -> bool:
    modules = [*_outermost_modules(root)]
    if not modules or _knows_hooks(root):
        return False
    for manager in modules:
        manager.add_lambda_guard(_may_run_plain, ["no run of notebook_probe reads there"], None)
    return True


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


def _may_run_plain(module: nn.Module) -> bool:
    """Return whether a graph that reads nothing may run for a module now."""
    try:
        return not any(keeper.reads_in(module) for keeper in [*keepers.values()])
    except Exception:  # training must survive any kind of module
        return True
