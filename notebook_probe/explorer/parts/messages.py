"""Messages about a run to a chat or a mailbox, whose address is typed into the panel.

An address is a secret: it goes from the view to the thread that makes the services, and nothing
that a view, a record or an error could show has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls
from notebook_probe.run.notify.lookout import EVERY_S, STALLED_S, checked_occasions

if TYPE_CHECKING:
    from notebook_probe.run.notify.notifier import Notifier

__all__ = ["MessagesEnd", "MessagesPart", "MessagesStart"]

MOST_LETTERS = 2000
"""Length of an address."""


class MessagesStart(TypedDict):
    """Send messages to an address on these occasions."""

    v: int
    type: Literal["notify"]
    id: str
    address: str
    on: list[str]


class MessagesEnd(TypedDict):
    """Send no more messages of one row."""

    v: int
    type: Literal["notify_end"]
    which: int


class MessagesRow(TypedDict):
    """Row of messages that were begun in this panel."""

    id: int
    kind: str
    """Scheme of the address, such as ``"slack"``, and all that is shown of it."""
    on: list[str]
    n_sent: int
    problem: str


@runtime_checkable
class Accompanied(Protocol):
    """Protocol of the controls of a run in this process."""

    def accompany(self, begin: Callable[..., Any]) -> Any:
        """Begin a reader of the run."""


class MessagesPart(Part):
    """Messages of a run in this process; none of a record, nor of a training elsewhere."""

    name: ClassVar = "messages"
    heard: ClassVar = {"notify": MessagesStart, "notify_end": MessagesEnd}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._worker = Worker("notebook_probe messages")
        self._begun: dict[int, tuple[Notifier, list[str]]] = {}
        self._answered, self._problem = "", ""

    def state(self, seen: Seen) -> Mapping[str, Any]:
        is_live = isinstance(self._controls, Accompanied) and seen.head.state != "finished"
        rows = [_row(place, *begun) for place, begun in [*self._begun.items()]]
        return {
            "live": is_live,
            "rows": [row for row in rows if row is not None],
            "answered": self._answered,
            "problem": self._problem,
        }

    def hear(self, message: MessagesStart | MessagesEnd) -> None:
        """Begin or end messages, on a thread: apprise takes a while to be imported."""
        if message["type"] == "notify":
            self._worker.do(lambda: self._begin(message))
        elif message["which"] in self._begun:
            self._worker.do(self._begun[message["which"]][0].close)

    def _begin(self, message: MessagesStart) -> None:
        problem = ""
        try:
            self._notify(message["address"].strip(), message["on"])
        except (ProbeError, ValueError, ImportError) as error:  # ours: none has the address
            problem = str(error)
        except Exception as error:  # a library's, which may have it
            problem = f"messages cannot be sent: {type(error).__name__}"
        self._answered, self._problem = message["id"], problem

    def _notify(self, address: str, on: list[str]) -> None:
        # A run in this process has loaded torch, which these import; a record is shown without.
        from notebook_probe.run.notify.notifier import Notifier
        from notebook_probe.run.notify.services import Services

        if not isinstance(self._controls, Accompanied):
            raise ValueError("messages are sent by the process that trains: call nbp.notify there")
        if not 0 < len(address) <= MOST_LETTERS:
            raise ValueError("an address is expected, such as slack://...")
        begin = partial(
            Notifier,
            self._source.name,
            services=Services([address]),
            on=checked_occasions(on),
            every_s=EVERY_S,
            stalled_s=STALLED_S,
        )
        self._begun[len(self._begun)] = self._controls.accompany(begin), on


def _row(place: int, sent: Notifier, on: list[str]) -> MessagesRow | None:
    """Return the row of messages that are sent; None once they have ended."""
    if sent.closed:
        return None
    return {
        "id": place,
        "kind": ", ".join(sent.kinds),
        "on": on,
        "n_sent": sent.n_sent,
        "problem": sent.problem,
    }
