"""One capability of a panel: what its views are told of it, and what they may ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import Frame
from notebook_probe.record.format.source import Source
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import StatusHead

__all__ = ["Click", "Part", "Seen"]


@dataclass(frozen=True, slots=True)
class Click:
    """A message from a view that asks something of the run, and is answered with a ticket."""

    shape: type
    """Its typed dictionary."""
    request: Callable[[Any], Request]
    """What a message of this shape asks for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to see at one refresh."""

    head: StatusHead
    selection: PanelSelection


class Part(ABC):
    """One capability; it lives as long as its panel.

    Parameters
    ----------
    source : Source
    controls : Controls or None
        None for a record that was opened.

    Attributes
    ----------
    name : str
        Type of the message in which its state goes to the views, and of their ``state.parts``.
    clicks : mapping of str to Click
        Type of a message to what it asks of the run.
    heard : mapping of str to type
        Type of a message to its typed dictionary: those that `hear` takes in.
    """

    name: ClassVar[str]
    clicks: ClassVar[Mapping[str, Click]] = {}
    heard: ClassVar[Mapping[str, type]] = {}

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source, self._controls = source, controls

    @abstractmethod
    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        """All that a view has to know now, as JSON has it; None where there is nothing to say.

        Asked at each refresh, on its thread; it is sent when it is another than before.
        """

    def frames(self) -> Sequence[Frame]:
        """Messages with buffers that were asked for, each to be sent once."""
        return ()

    def forget(self) -> None:  # noqa: B027  most parts send no frames of their own accord
        """A view has come that knows nothing: what was sent once is to be sent again."""

    def hear(self, message: Any) -> None:
        """Take in one of the messages in `heard`, on the thread of the refresher."""
        raise NotImplementedError(f"{type(self).__name__} hears nothing: {message!r}")
