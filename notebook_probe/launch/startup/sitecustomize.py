"""Startup of a program under ``nbp run``: what its first optimizer trains is watched.

Python imports this file before the program. It imports nothing that the program may want to
configure first, such as numpy and torch, which read the number of threads from the environment.
Trainers that take their loggers by a word are taught ours when the program has imported them.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

OPTIMIZERS = "torch.optim.optimizer"
TAKE_A_WORD = {
    "transformers.trainer": "notebook_probe.train.frameworks.transformers",
    "accelerate.tracking": "notebook_probe.train.frameworks.accelerate",
}
"""Module of a trainer, which imports torch -> module of ours, which registers when imported."""
LAUNCH = "NOTEBOOK_PROBE_LAUNCH"
"""Variable with the number of the first process, and the file in which others note records."""
MOST_NAMED = 5


class ModuleFinder:
    """Finder of one module, once; all others are found without it.

    Parameters
    ----------
    name : str
    imported : callable
        Function to call with the module when it has run.
    """

    def __init__(self, name: str, imported: Callable[[Any], None]) -> None:
        self._name, self._imported = name, imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of the other finders, with a loader that calls us afterwards."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                loader = FollowingLoader(spec.loader, self._imported)
                spec.loader = loader  # type: ignore[assignment]
                return spec
        return None


class FollowingLoader:
    """Loader that leaves a module with its usual loader, and reports that it has run."""

    def __init__(self, loader: Any, imported: Callable[[Any], None]) -> None:
        self._loader, self._imported = loader, imported

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then report it."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._imported(module)


def teach(trainer: Any) -> None:
    """Make our word known to a trainer."""
    try:
        __import__(TAKE_A_WORD[trainer.__name__])
    except Exception as error:  # perhaps another version, under which training must still run
        tell(f"{trainer.__name__} does not know notebook_probe: {type(error).__name__}: {error}")


def follow(optimizer_class: Any) -> None:
    """Hand new optimizers to `watching`, until it has seen enough of them."""
    begin = optimizer_class.__init__

    @wraps(begin)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        if optimizer_class.__init__ is __init__ and not _matters(self):
            optimizer_class.__init__ = begin

    optimizer_class.__init__ = __init__


def _matters(optimizer: Any) -> bool:
    """Hand over an optimizer; return whether the next one matters."""
    try:
        from notebook_probe.launch.watching import made
    except Exception as error:  # perhaps another interpreter, in which training must still run
        tell(f"not watched: {type(error).__name__}: {error}")
        return False
    return made(optimizer)


def tell(text: str) -> None:
    """Print a line on stderr, if there is one."""
    try:
        print(f"notebook_probe: {text}", file=sys.stderr, flush=True)
    except (AttributeError, OSError, ValueError):  # closed, as of a daemon
        return


def report(notes: str) -> None:
    """Print where the records of all processes are, and the next commands.

    Parameters
    ----------
    notes : str
        File with a JSON object per line, which is removed.
    """
    # Here, as a program may have a file json.py, which would not be found any more.
    import json
    import shlex

    try:
        with open(notes, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        os.remove(notes)
    except (OSError, ValueError):
        return
    places = dict.fromkeys(one["record"] for one in lines if "record" in one)
    for one in lines:
        places.pop(one.get("given_up"), None)
    kept = [one for one in places if "://" in one or os.path.exists(one)]
    for place in kept[:MOST_NAMED]:
        name = shlex.quote(os.path.relpath(place) if _is_below(place) else place)
        tell(f"the record is {name}; see:")
        tell(f"  nbp explain {name}")
        tell(f"  nbp tree {name}")
        tell(f"  nbp series {name} '(root)' '*loss*'")
    if len(kept) > MOST_NAMED:
        tell(f"and {len(kept) - MOST_NAMED} more records: nbp runs")
    if not kept:
        for text in dict.fromkeys(one["text"] for one in lines if "text" in one):
            tell(text)
    if places and not kept:
        tell("no step was trained, so there is no record")
    if not lines:
        tell("nothing was watched: the program made no torch optimizer")


def _is_below(place: str) -> bool:
    return place.startswith(os.path.join(os.getcwd(), ""))


def _report_at_exit() -> None:
    first, _, notes = os.environ.get(LAUNCH, "").partition(":")
    if first == str(os.getpid()):
        # Registered before everything of the program, so called after it, when records are closed.
        atexit.register(report, notes)


def _leave_the_path(folder: str) -> None:
    """Take this folder off the path, and run a file of the same name that it hides."""
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != folder]
    hidden = PathFinder.find_spec("sitecustomize")
    if hidden is not None and hidden.loader is not None:
        module = module_from_spec(hidden)
        sys.modules["sitecustomize"] = module
        hidden.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, ModuleFinder(OPTIMIZERS, lambda module: follow(module.Optimizer)))
    sys.meta_path[:0] = [ModuleFinder(name, teach) for name in TAKE_A_WORD]
    _report_at_exit()
    _leave_the_path(os.path.dirname(os.path.abspath(__file__)))
