"""The Jupyter protocol, spoken by a kernel with itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import zmq
from jupyter_client.client import KernelClient

from notebook_probe.explorer.notebooks.way import MessageWay

__all__ = ["JupyterWay", "Wanted", "client", "create_subshell"]

CONTROL_TIMEOUT_S = 5.0


class JupyterWay(MessageWay):
    """A way on which a kernel that speaks the Jupyter protocol answers."""

    answers = True

    def tell_myself(self, comm_id: str, content: Mapping[str, Any]) -> None:
        own = client()
        data = {"method": "custom", "content": content}
        with own.connect_shell() as socket:
            own.session.send(socket, "comm_msg", {"comm_id": comm_id, "data": data})


@functools.cache
def client() -> KernelClient:
    """Return a client of this kernel, to talk to it by the public protocol."""
    from ipykernel.connect import get_connection_file

    own = KernelClient(context=zmq.Context.instance())
    own.load_connection_file(get_connection_file())
    return own


def create_subshell() -> str:
    """Return the id of a new subshell of this kernel; RuntimeError if it has none."""
    features = _ask_control("kernel_info_request").get("supported_features", [])
    if "kernel subshells" not in features:
        raise RuntimeError("this kernel has no subshells")
    return str(_ask_control("create_subshell_request")["subshell_id"])


def _ask_control(request: str) -> dict[str, Any]:
    """Return the control thread's reply; it answers while the main thread is busy."""
    own = client()
    with own.connect_control() as socket:
        own.session.send(socket, request)
        if not socket.poll(int(CONTROL_TIMEOUT_S * 1000)):
            raise TimeoutError(f"the kernel did not answer {request}")
        _, reply = own.session.recv(socket)
    return dict(reply["content"])


ARRIVALS = {"kernel_info_request", "comm_info_request"}
"""Requests of a reloaded page before it can ask for its widgets."""

CONTROL = "jupyter.widget.control"
"""The comm on which it then asks for the state of all widgets."""


class Wanted:
    """Messages for us to answer: of carried comms, and of a page that is loaded again.

    Without the latter, a page loaded while a cell blocks shows no widget until the cell ends.

    Parameters
    ----------
    session : jupyter_client.session.Session
    carried : set of str
        Ids of carried comms, now and later.
    """

    def __init__(self, session: Any, carried: set[str]) -> None:
        self.session = session
        self._carried = carried
        self._asking: set[str] = set()  # comms of pages that ask for their widgets

    def among(self, frames: list[zmq.Frame]) -> tuple[list[bytes], dict[str, Any]] | None:
        """Identities and message, its content packed; None when it is not ours."""
        try:
            identities, parts = self.session.feed_identities(frames, copy=False)
            message = self.session.deserialize(parts, content=False, copy=False)
        except (ValueError, TypeError):  # not a message; the kernel itself reports it
            return None
        return (identities, message) if self._is_ours(message) else None

    def _is_ours(self, message: dict[str, Any]) -> bool:
        kind = message["msg_type"]
        if kind in ARRIVALS:
            return True
        if kind not in {"comm_open", "comm_msg", "comm_close"}:
            return False
        content = self.session.unpack(message["content"])
        comm_id = content.get("comm_id")
        if kind == "comm_open" and content.get("target_name") == CONTROL:
            self._asking.add(comm_id)
        return comm_id in self._carried or comm_id in self._asking
