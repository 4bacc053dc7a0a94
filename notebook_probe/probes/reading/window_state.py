"""The state of a window as tensors, numbers, text, and lists and dicts of these.

Thus it can be part of a checkpoint, which contains no code: it is set in a new window, attribute by
attribute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.define.window import Window

__all__ = ["HOST", "UnkeepableError", "WindowState", "are_alike", "state_of", "take_state"]

WindowState: TypeAlias = "dict[str, Any]"

HOST = torch.device("cpu")
PLAIN = (bool, int, float, str, type(None))


class UnkeepableError(Exception):
    """A window has gathered something else."""


def state_of(window: Window) -> WindowState:
    """Return all attributes of a window; tensors are its own.

    Raises
    ------
    UnkeepableError

    Examples
    --------
    >>> from collections import deque
    >>> class Newest:
    ...     def __init__(self): self.values = deque([1.0, 2.0], maxlen=2)
    >>> state = state_of(Newest())
    >>> state
    {'values': ['deque', [1.0, 2.0]]}
    >>> new = Newest(); new.values.clear(); take_state(new, state); new.values
    deque([1.0, 2.0], maxlen=2)
    """
    return {name: _kept(value) for name, value in vars(window).items()}


def take_state(window: object, state: Mapping[str, Any], device: torch.device = HOST) -> None:
    """Set copies of a state in a new window.

    Parameters
    ----------
    window : Window
    state : mapping
    device : torch.device
        Device for tensors that were on an accelerator.

    Raises
    ------
    UnkeepableError
        It is of a window of another kind.
    """
    known = _attributes(window) or {}
    for name, value in state.items():
        taken = _taken(value, known.get(name), device)
        try:
            setattr(window, name, taken)
        except AttributeError as error:  # of an object that is not to be changed
            raise UnkeepableError(f"{type(window).__qualname__}.{name}") from error


def are_alike(one: Window, other: Window) -> bool:
    """Return whether two windows have the same state; False if it cannot be compared."""
    try:
        return _equal(state_of(one), state_of(other))
    except UnkeepableError:
        return False


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and bool((one == other).all())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _kept(value: Any) -> Any:
    """Return a plain value unchanged, any other as a list of its kind and its content."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, Tensor):
        return value if value.is_cpu else ["there", value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return ["array", torch.from_numpy(value)]
    if type(value) in (list, tuple, deque):
        return [type(value).__name__, [_kept(one) for one in value]]
    if type(value) is dict:
        return ["dict", [[_kept(key), _kept(one)] for key, one in value.items()]]
    attributes = None if callable(value) else _attributes(value)
    if attributes is not None:
        return ["object", {name: _kept(one) for name, one in attributes.items()}]
    raise UnkeepableError(f"{type(value).__qualname__}")


def _attributes(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object, also of a dataclass with slots; None if it has none."""
    if hasattr(value, "__dict__"):
        return vars(value)
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return None


def _taken(kept: Any, like: Any, device: torch.device) -> Any:
    """Return the value of a state; ``like`` is the value in a new window."""
    if isinstance(kept, Tensor):
        return kept.clone()
    if not isinstance(kept, list):
        return kept
    kind, inner = kept
    if kind == "there":
        return inner.to(device, copy=True)
    if kind == "array":
        return inner.numpy().copy()
    if kind == "dict":
        return {_taken(key, None, device): _taken(one, None, device) for key, one in inner}
    if kind == "object":
        if _attributes(like) is None:
            raise UnkeepableError("an object that a new window has not")
        take_state(like, inner, device)
        return like
    values = [_taken(one, None, device) for one in inner]
    if kind == "deque":
        return deque(values, like.maxlen if isinstance(like, deque) else None)
    return tuple(values) if kind == "tuple" else values
