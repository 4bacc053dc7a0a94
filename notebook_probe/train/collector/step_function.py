"""A function of the user's own as what runs steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

from torch import nn

__all__ = ["StepFunction"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


class StepFunction(Generic[Given, Result]):
    """A function each call of which is a step; one that raises is none.

    Parameters
    ----------
    function : callable
        Called as it is, from any thread.
    model : nn.Module, optional
        Model that the function runs: if a run watches it, its record has the numbers, too.

    Examples
    --------
    >>> import torch
    >>> from notebook_probe import DataCollector
    >>> collector = DataCollector().collect_all()
    >>> @StepFunction
    ... def halve(x):
    ...     collector.collect(x.norm(), "norm")
    ...     return x / 2
    >>> handle = collector.attach_to_executor(halve)
    >>> halve(halve(torch.tensor([3.0, 4.0])))
    tensor([0.7500, 1.0000])
    >>> collector.get_series_steps("norm"), collector.get_series_values("norm")
    ([0, 1], [5.0, 2.5])
    """

    def __init__(
        self,
        function: Callable[Given, Result],
        model: nn.Module | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"StepFunction({function!r}): a function is expected")
        self.model = model
        self._function = function
        # A tuple is read, then replaced: of two threads at once one would lose its function.
        self._lock = threading.Lock()
        self._at_begin: tuple[Callable[[], None], ...] = ()
        self._at_end: tuple[Callable[[], None], ...] = ()
        update_wrapper(self, function)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        # Tuples are replaced, not changed: others may join or leave meanwhile, on any thread.
        for act in self._at_begin:
            act()
        result = self._function(*args, **kwargs)
        for act in self._at_end:
            act()
        return result

    def on_begin(self, act: Callable[[], None], /) -> Callable[[], None]:
        """Call ``act`` as each call begins; returns what ends that."""
        with self._lock:
            self._at_begin = (*self._at_begin, act)
        return lambda: self._forget(act)

    def on_end(self, act: Callable[[], None], /) -> Callable[[], None]:
        """Call ``act`` as each call returns; returns what ends that."""
        with self._lock:
            self._at_end = (*self._at_end, act)
        return lambda: self._forget(act)

    def _forget(self, act: Callable[[], None]) -> None:
        with self._lock:
            self._at_begin = tuple(one for one in self._at_begin if one is not act)
            self._at_end = tuple(one for one in self._at_end if one is not act)
