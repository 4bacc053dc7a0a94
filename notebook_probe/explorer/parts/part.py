"""Base class of a panel's capabilities: their state, and the clicks they handle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import StatusHead

__all__ = ["Click", "Part", "Seen"]


@dataclass(frozen=True, slots=True)
class Click:
    """A message from a view that asks something of the run, and is answered with a ticket."""

    shape: type
    """Typed dictionary of the message."""
    request: Callable[[Any], Request]
    """Function that turns a message of this shape into a request."""
    restarts: bool = False
    """True if it can make a loop that has ended train again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """State of the panel that a part needs at one refresh."""

    head: StatusHead
    selection: PanelSelection


class Part(ABC):
    """Base class of a panel's capabilities; one object per panel.

    Parameters
    ----------
    source : RunSource
    controls : Controls or None
        None for a record that was opened.

    Attributes
    ----------
    name : str
        Type of the message in which its state goes to the views, and of their ``state.parts``.
    clicks : mapping of str to Click
        Type of a message to its request to the run.
    heard : mapping of str to type
        Type of a message to its typed dictionary: the messages that `hear` accepts.
    """

    name: ClassVar[str]
    clicks: ClassVar[Mapping[str, Click]] = {}
    heard: ClassVar[Mapping[str, type]] = {}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        self._source, self._controls = source, controls

    @abstractmethod
    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        """Return all that a view has to know, as JSON; None if there is nothing to say.

        Called at each refresh, on its thread; the state is sent when it has changed.
        """

    def frames(self) -> Sequence[Frame]:
        """Return messages with buffers that views requested, each to be sent once."""
        return ()

    def forget(self) -> None:  # noqa: B027  most parts only send frames when asked
        """Send everything again: a new view has nothing."""

    def hear(self, message: Any) -> None:
        """Take in one of the messages in `heard`, on the thread of the refresher."""
        raise NotImplementedError(f"{type(self).__name__} handles no message: {message!r}")
