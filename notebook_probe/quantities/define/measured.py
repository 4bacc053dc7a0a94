"""Guarded calls of the functions of a user's own reductions; errors name the reduction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from notebook_probe.errors import InterferenceError, ProbeError, QuantityError, UnreadableError
from notebook_probe.quantities.define.pooled import Pooled, result, tensor_of
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.quantities.reduce.guard import Guard

__all__ = ["MeasuredFunction", "Worked", "finished"]


def finished(state: Any) -> Any:
    """Return the value that a quantity receives for a pooled state."""
    return result(state) if isinstance(state, Pooled) else state


class MeasuredFunction:
    """Caller of a function with a tensor that was read; it keeps nothing of the training's."""

    def __init__(
        self, name: str, function: Callable[..., Any], wanted: tuple[str, ...], combine: Combine
    ) -> None:
        functools.update_wrapper(self, function)
        self._name, self._function, self._wanted = name, function, wanted
        self._combine: Combine = combine
        self._guard = Guard(f"reduction {name}")
        self._tried: set[object] = set()

    def __call__(self, tensor: Any, module: nn.Module | None, wanted: frozenset[str]) -> Any:
        given = local(tensor.detach()) if isinstance(tensor, Tensor) else tensor
        kind = type(module), type(given), getattr(given, "ndim", 0), getattr(given, "dtype", None)
        # Each kind of argument is tried on copies first: a function that writes in place is found
        # before it can change the training.
        is_tried = kind in self._tried
        self._tried.add(kind)
        beside = {"tensor": given, "module": module}
        returned = _called(
            self._name,
            lambda *given: self._guard(self._function, given, on_copies=not is_tried),
            [beside[one] for one in self._wanted],
        )
        # A state of the user's class pools itself; anything else is pooled by `combine`.
        if callable(getattr(returned, "merge", None)):
            return returned
        return Pooled(tensor_of(f"reduction {self._name}", returned), self._combine)


class Worked:
    """Caller of a function with the results of other reductions."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._name, self._function = name, function

    def __call__(self, *given: Any) -> Tensor:
        returned = _called(self._name, self._function, given)
        return tensor_of(f"reduction {self._name}", returned)


def _called(name: str, function: Callable[..., Any], given: Sequence[Any]) -> Any:
    try:
        return function(*given)
    except (InterferenceError, UnreadableError):
        raise
    except Exception as error:
        words = error if isinstance(error, ProbeError) else f"{type(error).__name__}: {error}"
        shapes = ", ".join(str(tuple(one.shape)) for one in given if isinstance(one, Tensor))
        of_shapes = f" of {shapes}" if shapes else ""
        raise QuantityError(f"reduction {name}{of_shapes}: {words}") from error
