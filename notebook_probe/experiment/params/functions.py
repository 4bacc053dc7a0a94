"""Functions and classes as a record can hold them: where they come from."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from notebook_probe.run.begin.provenance import git_state

__all__ = ["Origins"]

log = logging.getLogger(__name__)


class Origins:
    """Origin of functions: module, name, and the version of the package or state of git.

    Parameters
    ----------
    skip_check : bool
        Leave out the version and the state of git.

    Examples
    --------
    >>> import json
    >>> Origins(skip_check=True).of(json.dumps)
    {'module': 'json', 'name': 'dumps'}
    """

    def __init__(self, skip_check: bool = False) -> None:
        self._skip_check = skip_check
        self._states: dict[Path, dict[str, Any]] = {}

    def of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the origin of a function, a class, or the class of a callable object."""
        # A decorated function is recorded as the one it wraps, which is the one in the source file.
        named = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
        # An instance with `__call__` has no qualified name, so the name of its class is used.
        if not hasattr(named, "__qualname__"):
            named = type(named)
        module = str(getattr(named, "__module__", None) or "builtins")
        told = {"module": module, "name": named.__qualname__}
        return told if self._skip_check else {**told, **self._version(module)}

    def of_partial(self, function: partial[Any]) -> dict[str, Any]:
        """Return the origin of a partial function; its own arguments are left to the caller."""
        return {**self.of(function.func), "args": function.args, "kwargs": function.keywords}

    def _version(self, module: str) -> dict[str, Any]:
        package = module.partition(".")[0]
        if package in sys.stdlib_module_names and package != "__main__":
            return {}
        version = _version_of(package)
        if version is not None:
            return {"package": package, "version": version}
        folder = _folder_of(module)
        # Git runs as a subprocess, so it is asked once per folder; the warning appears once, too.
        if folder not in self._states:
            self._states[folder] = state = git_state(folder)
            if state and state["changed_files"]:
                log.warning("%s: the code in %s has uncommitted changes", module, folder)
        state = self._states[folder]
        return {"git": state} if state else {}


def _version_of(package: str) -> str | None:
    found = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(found, str):
        return found
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _folder_of(module: str) -> Path:
    """Return the folder of a module's file; for a notebook's cells the working directory."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).resolve().parent if file else Path.cwd()
