"""Answers panel clicks while a cell blocks the kernel; the only file that knows ipykernel.

What decides is the thread that handles an incoming comm message. A blocking cell holds the main
thread, so the messages of a panel's comms take another way, and only theirs do:

=================  =====================  =========================================================
way                ipykernel              messages of carried comms are
=================  =====================  =========================================================
``own subshell``   7.4 and newer          handled in a kernel subshell of our own, which the comm
                                          itself asks for
``own subshell``   7.1 to 7.3             the same; their address is rewritten as they arrive
``pump``           6.29 and newer 6       picked out of the waiting ones at a step boundary
``after the cell`` anything else          not answered before the cell ends
``no kernel``      a plain script         not there
=================  =====================  =========================================================

Each way touches, when it is built, every private name it relies on; one that is missing rules the
way out and the next is tried. A front end may ask for a subshell of its own or for none, and may
come back with a new one after a reload: the panel's messages go to one thread in any case, so they
keep their order and an address nobody knows loses nothing.
"""

from __future__ import annotations

import functools
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import zmq
from comm.base_comm import BaseComm
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import ExecutionResult
from jupyter_client.client import KernelClient

__all__ = ["KernelRoute", "kernel_route", "widget_lock"]

widget_lock = threading.RLock()
"""Held round every widget write of the process: two threads in ipywidgets lose updates."""

PUMP_INTERVAL_S = 0.05
CONTROL_TIMEOUT_S = 5.0
# A private name that is missing, no connection file, a control channel that does not answer.
UNSUITED = (
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zmq.ZMQError,
)


class KernelRoute:
    """The way on which this process answers panel messages while a cell runs.

    Get it from `kernel_route`; every method may be called in any environment and does nothing
    where there is nothing to do.
    """

    def __init__(self) -> None:
        self._shell = get_ipython()
        self._way = _choose(getattr(self._shell, "kernel", None))
        self._works = True  # until a self-test says otherwise
        self._pings: dict[str, threading.Event] = {}

    @property
    def name(self) -> str:
        """The way in words: own subshell, pump, after the cell, or no kernel."""
        return self._way.name if self._works else "after the cell"

    @property
    def cell(self) -> str:
        """The running cell by the front end's own name for it; empty where it tells none."""
        get_parent = getattr(self._shell, "get_parent", None)
        parent = {} if get_parent is None else get_parent()
        return str(parent.get("metadata", {}).get("cellId", ""))

    def carry(self, comm: BaseComm) -> None:
        """Answer this comm's messages while a cell blocks; call it right after creation."""
        _keep_figures(comm)
        self._way.carry(comm)

    def forget(self, comm: BaseComm) -> None:
        """Undo `carry`; harmless when there is nothing to undo."""
        vars(comm).pop("handle_msg", None)
        self._way.forget(comm)

    def pump(self) -> None:
        """Answer waiting messages now, at most 20 times a second; for every step boundary."""
        self._way.pump()

    def verify(self, comm: BaseComm, timeout_s: float = 0.5) -> str:
        """Send this carried comm a ping and return the name of the way it took.

        To be called from the cell that blocks the main thread. The callback of the comm passes
        the ping's token to `answered`; when that does not happen in time, the name becomes
        ``after the cell`` until an answer arrives late but off the main thread.
        """
        if not self._way.answers:
            return self.name
        token = uuid.uuid4().hex
        answered = self._pings[token] = threading.Event()
        _send_to_myself(comm.comm_id, {"v": 1, "type": "ping", "token": token})
        deadline = time.monotonic() + timeout_s
        while not answered.wait(0.01) and time.monotonic() < deadline:
            self._way.pump()
        self._works = answered.is_set()
        return self.name

    def answered(self, token: str) -> None:
        """Note that the ping with this token has reached the comm's callback."""
        event = self._pings.pop(token, None)
        if event is None:
            return
        event.set()
        if threading.current_thread() is not threading.main_thread():
            self._works = True

    def on_cell_end(self, callback: Callable[[BaseException | None], None]) -> Callable[[], None]:
        """Call ``callback`` after every notebook cell, with its error; returns its removal."""
        shell = self._shell
        if shell is None:
            return lambda: None

        def cell_ended(result: ExecutionResult) -> None:
            callback(result.error_in_exec)

        def remove() -> None:
            with suppress(ValueError):  # removed before
                shell.events.unregister("post_run_cell", cell_ended)

        shell.events.register("post_run_cell", cell_ended)
        return remove


def kernel_route() -> KernelRoute:
    """The one route of this process, built at the first call.

    Examples
    --------
    >>> kernel_route().name  # in a plain script
    'no kernel'
    """
    with widget_lock:
        return _the_route()


@functools.cache
def _the_route() -> KernelRoute:
    return KernelRoute()


# ------------------------------------------------------------------------------------- the ways


class _Way:
    """The way of last resort: messages wait for the end of the cell, or nobody sends any."""

    answers = False
    """Messages are answered while a cell blocks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.carried: set[str] = set()

    def carry(self, comm: BaseComm) -> None:
        self.carried.add(comm.comm_id)

    def forget(self, comm: BaseComm) -> None:
        self.carried.discard(comm.comm_id)

    def pump(self) -> None: ...


class _AskedByComm(_Way):
    """ipykernel 7.4: a comm names the subshell that handles its messages, so ours name our own."""

    answers = True

    def __init__(self, kernel: Any) -> None:
        super().__init__("own subshell")
        from ipykernel.comm.comm import BaseComm as KernelComm

        _ = KernelComm._reply_subshell_for
        self._subshell_id = _create_subshell()

    def carry(self, comm: BaseComm) -> None:
        subshell_id = self._subshell_id
        # Runs in the thread that receives every message of the kernel: no lock, no work.
        vars(comm)["_reply_subshell_for"] = lambda data, default: subshell_id

    def forget(self, comm: BaseComm) -> None:
        vars(comm).pop("_reply_subshell_for", None)


class _Readdressed(_Way):
    """ipykernel 7.1 to 7.3: our messages get our own subshell's address as they arrive."""

    answers = True

    def __init__(self, kernel: Any) -> None:
        super().__init__("own subshell")
        self._session = kernel.session
        self._deliver = kernel.shell_channel_thread_main
        loop, stream = kernel.shell_channel_thread.io_loop, kernel.shell_stream
        self._subshell_id = _create_subshell()
        loop.add_callback(stream.on_recv, self._receive, copy=False)

    def _receive(self, frames: list[zmq.Frame]) -> Any:
        found = _comm_message(self._session, frames, self.carried)
        if found is not None:
            identities, message = found
            message["header"]["subshell_id"] = self._subshell_id
            head = self._session.serialize(message, identities)
            frames = [zmq.Frame(part) for part in head] + frames[len(head) :]
        return self._deliver(frames)


class _Pump(_Way):
    """ipykernel 6 has one thread for everything: our messages are handled between two steps."""

    answers = True

    def __init__(self, kernel: Any) -> None:
        super().__init__("pump")
        self._kernel = kernel
        self._queue = kernel.msg_queue
        self._identities = kernel._parent_ident
        self._next_s = 0.0
        _client()

    def pump(self) -> None:
        now = time.monotonic()
        if now < self._next_s or threading.current_thread() is not threading.main_thread():
            return  # off the main thread nothing blocks the kernel's own loop
        self._next_s = now + PUMP_INTERVAL_S
        while (found := self._take_one()) is not None:
            self._handle(*found)

    def _take_one(self) -> tuple[list[bytes], dict[str, Any]] | None:
        """Take the first message of a carried comm; everything else stays, in its order."""
        first = None
        with _uninterrupted():
            self._kernel.shell_stream.flush(zmq.POLLIN)  # moves what has arrived into the queue
            for _ in range(self._queue.qsize()):
                entry = self._queue.get_nowait()
                frames = entry[2][0] if entry[2] else []
                found = _comm_message(self._kernel.session, frames, self.carried)
                if first is None and found is not None:
                    first = found
                else:
                    self._queue.put_nowait(entry)
        return first

    def _handle(self, identities: list[bytes], message: dict[str, Any]) -> None:
        """Do as the kernel does, but let an interrupt through to the cell."""
        kernel = self._kernel
        cell, cell_identities = kernel.get_parent("shell"), self._identities["shell"]
        message["content"] = kernel.session.unpack(message["content"])
        kernel.set_parent(identities, message, channel="shell")
        try:
            self._publish("busy")
            kernel.shell_handlers[message["msg_type"]](kernel.shell_stream, identities, message)
        finally:
            self._publish("idle")
            kernel.set_parent(cell_identities, cell, channel="shell")

    def _publish(self, state: str) -> None:
        kernel = self._kernel
        topic = f"kernel.{kernel.ident}.status".encode()
        kernel.send_response(kernel.iopub_socket, "status", {"execution_state": state}, topic)


def _choose(kernel: Any) -> _Way:
    """The first way that this kernel has everything for."""
    if kernel is None:
        return _Way("no kernel")
    for way in (_AskedByComm, _Readdressed, _Pump):
        with suppress(*UNSUITED):
            return way(kernel)
    return _Way("after the cell")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold an interrupt back to the end of the block, on the main thread."""
    held = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)


def _keep_figures(comm: Any) -> None:
    """Leave IPython's execute events out of a panel message.

    They make matplotlib show and close the figure that the running cell is drawing.
    """

    def handle_msg(message: dict[str, Any]) -> None:
        if comm._msg_callback is not None:
            comm._msg_callback(message)

    if "_msg_callback" in vars(comm):
        vars(comm)["handle_msg"] = handle_msg


# ------------------------------------------------------------------------- messages and channels


def _comm_message(
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


@functools.cache
def _client() -> KernelClient:
    """A front end of this very kernel, so that the public protocol can be spoken with it."""
    from ipykernel.connect import get_connection_file

    client = KernelClient(context=zmq.Context.instance())
    client.load_connection_file(get_connection_file())
    return client


def _ask_control(request: str) -> dict[str, Any]:
    """The content of the control thread's reply; it answers while the main thread is busy."""
    client = _client()
    with client.connect_control() as socket:
        client.session.send(socket, request)
        if not socket.poll(int(CONTROL_TIMEOUT_S * 1000)):
            raise TimeoutError(f"the kernel did not answer {request}")
        _, reply = client.session.recv(socket)
    return dict(reply["content"])


def _create_subshell() -> str:
    features = _ask_control("kernel_info_request").get("supported_features", [])
    if "kernel subshells" not in features:
        raise RuntimeError("this kernel has no subshells")
    return str(_ask_control("create_subshell_request")["subshell_id"])


def _send_to_myself(comm_id: str, payload: dict[str, Any]) -> None:
    client = _client()
    content = {"comm_id": comm_id, "data": {"method": "custom", "content": payload}}
    with client.connect_shell() as socket:
        client.session.send(socket, "comm_msg", content)
