"""The Jupyter protocol, spoken by a kernel with itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import zmq
from jupyter_client.client import KernelClient

from notebook_probe.explorer.notebooks.way import Way

__all__ = ["JupyterWay", "client", "comm_message", "create_subshell"]

CONTROL_TIMEOUT_S = 5.0


class JupyterWay(Way):
    """A way on which a kernel that speaks the Jupyter protocol answers."""

    answers = True

    def tell_myself(self, comm_id: str, content: Mapping[str, Any]) -> None:
        own = client()
        data = {"method": "custom", "content": content}
        with own.connect_shell() as socket:
            own.session.send(socket, "comm_msg", {"comm_id": comm_id, "data": data})


@functools.cache
def client() -> KernelClient:
    """A front end of this very kernel, so that the public protocol can be spoken with it."""
    from ipykernel.connect import get_connection_file

    own = KernelClient(context=zmq.Context.instance())
    own.load_connection_file(get_connection_file())
    return own


def create_subshell() -> str:
    """The id of a new subshell of this kernel; RuntimeError where it has none."""
    features = _ask_control("kernel_info_request").get("supported_features", [])
    if "kernel subshells" not in features:
        raise RuntimeError("this kernel has no subshells")
    return str(_ask_control("create_subshell_request")["subshell_id"])


def _ask_control(request: str) -> dict[str, Any]:
    """The content of the control thread's reply; it answers while the main thread is busy."""
    own = client()
    with own.connect_control() as socket:
        own.session.send(socket, request)
        if not socket.poll(int(CONTROL_TIMEOUT_S * 1000)):
            raise TimeoutError(f"the kernel did not answer {request}")
        _, reply = own.session.recv(socket)
    return dict(reply["content"])


def comm_message(
    session: Any, frames: list[zmq.Frame], carried: set[str]
) -> tuple[list[bytes], dict[str, Any]] | None:
    """Identities and message (its content packed) when the frames are for a carried comm."""
    try:
        identities, parts = session.feed_identities(frames, copy=False)
        message = session.deserialize(parts, content=False, copy=False)
    except (ValueError, TypeError):  # not a message; the kernel itself reports it
        return None
    if message["msg_type"] not in {"comm_msg", "comm_close"}:
        return None
    comm_id = session.unpack(message["content"]).get("comm_id")
    return (identities, message) if comm_id in carried else None
