"""Targets of a collector: objects that know where their steps begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import nn

__all__ = ["Executor", "OpenSteps", "Step"]


@runtime_checkable
class Executor(Protocol):
    """Runs something step by step: one side of a trainer, its training or its evaluation.

    Beginning and end come on the thread that runs the step. One that fails has a beginning and no
    end; so has one that turns out to be none, as where a gradient scaler skips the update. It may
    have a ``model``: where a run watches that, its record has the numbers, too.
    """

    def on_begin(self, act: Callable[[], None], /) -> Callable[[], None]:
        """Call ``act`` as each step begins; returns what ends that."""
        ...

    def on_end(self, act: Callable[[], None], /) -> Callable[[], None]:
        """Call ``act`` as each step is complete; returns what ends that."""
        ...


class Step:
    """A step of one executor, known by identity.

    Parameters
    ----------
    number : int
    is_training : bool or None
        The model's mode as it began; None where no model is known.

    Attributes
    ----------
    has_ended : bool
        True if the step is complete: numbers that are still collected in it are kept at once.
    """

    __slots__ = ("__weakref__", "has_ended", "is_training", "mirrored", "number")

    def __init__(self, number: int, is_training: bool | None) -> None:
        self.number, self.is_training = number, is_training
        self.has_ended = False
        self.mirrored: set[str] = set()
        """Series of which a run's record has a value at this step."""


class OpenSteps(Protocol):
    """The steps of what a collector is attached to."""

    @property
    def model(self) -> nn.Module | None:
        """Model that runs in the steps; None after it was garbage collected."""
        ...

    @property
    def is_alive(self) -> bool:
        """True if there may be more steps."""
        ...

    def now(self) -> Step | None:
        """Return the step of a value that is collected on this thread now."""
        ...

    def close(self) -> None:
        """Stop listening to steps; may be called twice."""
