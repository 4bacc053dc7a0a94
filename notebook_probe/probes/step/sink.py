"""The roles round an observer: who receives its steps, holds them up, and keeps what happened."""

from __future__ import annotations

from typing import Protocol

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["Events", "OpenGate", "StepGate", "StepSink"]


class StepSink(Protocol):
    """Where closed steps go."""

    def publish(self, frame: StepFrame) -> None:
        """Take in a step that was trained."""

    def evaluated(self, frame: StepFrame) -> None:
        """Take in an evaluation of the state between two updates."""

    def settled(self) -> None:
        """No step is open now: what was logged of the state is whole."""

    def announce(self, place: str, name: str) -> None:
        """Make room for what the model collects, before it is kept; may refuse the name."""


class StepGate(Protocol):
    """What stands between two steps."""

    awaits_update: bool
    """`before_update` is to be called in the open step."""

    def pass_to(self, step: int) -> float:
        """Return for how many seconds it held the training on the way to ``step``.

        May raise a BaseException, which ends the training loop.
        """
        ...

    def before_update(self, frame: StepFrame) -> float:
        """As `pass_to`, before the gradients that were read of an open step are applied."""
        ...


class OpenGate:
    """A gate at which nobody waits: that of an observer whose hooks are not on yet."""

    awaits_update = False

    def pass_to(self, step: int) -> float:
        return 0.0

    def before_update(self, frame: StepFrame) -> float:
        return 0.0


class Events(Protocol):
    """Who keeps what happened at a step."""

    def event(self, step: int, kind: str, text: str) -> None:
        """Note it, in words."""
