"""Parameters as a record can hold them: plain JSON, with functions described by their origin."""

from __future__ import annotations

import inspect
import logging
import math
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from importlib import metadata
from os import PathLike, fspath
from pathlib import Path
from re import Pattern
from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import Given
from notebook_probe.run.begin.provenance import git_state

__all__ = ["Origins", "plain"]

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


def plain(value: Any, where: str, origins: Origins) -> Any:
    """Return a value in JSON types.

    Numbers of numpy and of tensors are numbers, their arrays lists of lists; keys are text, and
    NaN and infinity are, too.

    Raises
    ------
    ParamError
        It cannot be stored; this is a TypeError.

    Examples
    --------
    >>> import numpy as np
    >>> plain({1: (np.float64(0.5), True), "max": math.inf}, "params", Origins())
    {'1': [0.5, True], 'max': 'inf'}
    >>> plain({"data": object()}, "params", Origins())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    notebook_probe.errors.ParamError: params['data'] is object, which no record can hold; ...
    """
    if isinstance(value, Given):
        value = value.shown()
    if isinstance(value, Mapping):
        return {
            _key(key, where): plain(one, f"{where}[{key!r}]", origins) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(one, f"{where}[{i}]", origins) for i, one in enumerate(value)]
    # An array of objects may hold anything, so it is not converted but refused below.
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return plain(value.tolist(), where, origins)
    if isinstance(value, Tensor):
        return plain(value.detach().cpu().tolist(), where, origins)
    # JSON has neither NaN nor infinities.
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if value is None or type(value) in (bool, int, float, str):
        return value
    # Before the numbers: a member of an IntEnum is an int, too.
    if isinstance(value, Enum):
        return plain(value.value, where, origins)
    if isinstance(value, int | float | str):
        return plain(_builtin(value), where, origins)
    if isinstance(value, torch.device | torch.dtype):
        return str(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Pattern):
        return value.pattern
    if isinstance(value, partial):
        return plain(origins.of_partial(value), where, origins)
    # A module is callable, but a name says nothing about its weights.
    if callable(value) and not isinstance(value, torch.nn.Module):
        return origins.of(value)
    raise ParamError(
        f"{where} is {type(value).__name__}, which no record can hold; allowed: text, numbers, "
        f"bools, None, arrays, lists and dicts of these, functions and classes"
    )


def _key(key: Any, where: str) -> str:
    if isinstance(key, str | int | float | bool) or key is None:
        return str(key)
    if isinstance(key, np.generic):
        return str(key.item())
    raise ParamError(f"{where} has the key {key!r}, which no record can hold")


def _builtin(value: int | float | str) -> Any:
    """Return the value of a subclass as its builtin type."""
    # No bool among them: it cannot be subclassed.
    kind = next(kind for kind in (int, float, str) if isinstance(value, kind))
    return kind(value)
