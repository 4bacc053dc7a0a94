"""Opening a run to requests from other processes, where its user allows it."""

from __future__ import annotations

import os
import uuid
import warnings
import weakref
from contextlib import suppress

from notebook_probe.errors import RecordWarning
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.record.store.location import Location
from notebook_probe.run.remote_control.desk import Desk, SharedControls
from notebook_probe.run.remote_control.mail import mail_of
from notebook_probe.run.remote_control.mail_server import MailServer
from notebook_probe.run.remote_control.places import (
    new_socket_path,
    place_of_record,
    remove_stale_sockets,
)
from notebook_probe.run.remote_control.socket_server import SocketServer

__all__ = ["CONTROL", "Sharing", "allows_control"]

CONTROL = "NOTEBOOK_PROBE_CONTROL"
"""Variable of the environment that allows control of every run of a process."""


def allows_control(control: bool | None) -> bool:
    """Return whether a run may be controlled from elsewhere; None asks the environment.

    Raises
    ------
    TypeError, ValueError
        Neither yes nor no.

    Examples
    --------
    >>> allows_control(True), allows_control(False)
    (True, False)
    """
    if control is None:
        text = os.environ.get(CONTROL, "0")
        if text not in ("", "0", "1"):
            raise ValueError(f"{CONTROL}={text!r}; 1 allows control, 0 does not")
        return text == "1"
    if not isinstance(control, bool):
        raise TypeError(f"control={control!r}; True, False or None is expected")
    return control


class Sharing:
    """The ways in of one run: a socket where there can be one, and the mailbox of its record.

    A way that cannot be opened is named in a warning: training continues without it.

    Parameters
    ----------
    controls : SharedControls
        Held weakly: a run that is dropped ends.
    events : EventSink
    location : path, URL or store
        Location of the record.
    """

    def __init__(self, controls: SharedControls, events: EventSink, location: Location) -> None:
        session = uuid.uuid4().hex
        desk = Desk(weakref.ref(controls), events, session, place_of_record(location))
        self._ways: list[SocketServer | MailServer] = []
        try:
            self._open(MailServer(desk, mail_of(location)), controls)
        except Exception as error:  # whatever the library of a store raises
            text = f"{location}: no control from other processes: {error}"
            warnings.warn(text, RecordWarning, stacklevel=4)
            return
        path = new_socket_path(session)
        if path is not None:
            remove_stale_sockets(path.parent)
            with suppress(OSError):  # the mailbox remains
                self._open(SocketServer(desk, path), controls)

    def _open(self, way: SocketServer | MailServer, controls: SharedControls) -> None:
        controls.each_news(way.wake)
        self._ways.append(way)

    def close(self) -> None:
        """Send the last answers and close every way in; twice is fine."""
        for way in self._ways:
            way.close()
