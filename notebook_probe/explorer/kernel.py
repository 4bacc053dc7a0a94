"""Ways to answer panel clicks while a cell blocks the kernel, in any notebook.

The thread that handles an incoming message decides. A blocking cell occupies the main thread, so
the messages of a panel's comms, and only these, take another way:

=================  =====================  =========================================================
way                where                  messages of carried comms are
=================  =====================  =========================================================
``own subshell``   ipykernel 7.4, newer   handled in a separate kernel subshell, which the comm
                                          itself requests
``own subshell``   ipykernel 7.1 to 7.3   the same; their address is rewritten as they arrive
``pump``           ipykernel 6.29 and     picked out of the waiting ones at a step boundary
                   newer 6
``pump``           marimo                 read early, at a step boundary
``after the cell`` anything else          not answered before the cell ends
``no kernel``      a plain script         not there
=================  =====================  =========================================================

Each way looks up every private name that it relies on when it is built; if one is missing, the next
way is tried. A front end may request its own subshell or none, and may return with a new one after
a reload: the panel's messages go to one thread in any case, so they keep their order, and none is
lost to an unknown address.
"""

from __future__ import annotations

import functools
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from notebook_probe.explorer.leaving import widget_lock
from notebook_probe.explorer.notebooks.jupyter import JupyterNotebook
from notebook_probe.explorer.notebooks.marimo import MarimoNotebook, marimo_kernel
from notebook_probe.explorer.notebooks.notebook import CellEnded, NoNotebook, Notebook, Shown

if TYPE_CHECKING:  # Colab has none
    from comm.base_comm import BaseComm

__all__ = ["KernelRoute", "kernel_route"]

KEPT_AS = "_notebook_probe_route"


class KernelRoute:
    """The way on which this process answers panel messages while a cell runs.

    Get it from `kernel_route`; every method may be called in any environment and does nothing
    where there is nothing to do.
    """

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._way = self._notebook.way
        self._works = True  # until a self-test says otherwise
        self._pings: dict[str, threading.Event] = {}

    @property
    def name(self) -> str:
        """The way in words: own subshell, pump, after the cell, or no kernel."""
        return self._way.name if self._works else "after the cell"

    @property
    def is_pumped(self) -> bool:
        """True if messages are answered by `pump`, which each step boundary must call."""
        return self._way.is_pumped

    @property
    def cell(self) -> str:
        """The running cell by the front end's own name for it; empty where it tells none."""
        return self._notebook.cell

    @property
    def execution(self) -> int:
        """Number of the cell's execution; later ones have higher numbers."""
        return self._notebook.execution

    def display(self, widget: Shown) -> None:
        """Show a widget below the running cell, at once."""
        self._notebook.display(widget)

    def carry(self, comm: BaseComm) -> None:
        """Answer this comm's messages while a cell blocks; call it right after creation."""
        _keep_figures(comm)
        self._way.carry(comm)

    def forget(self, comm: BaseComm) -> None:
        """Undo `carry`; does nothing if there is nothing to undo."""
        vars(comm).pop("handle_msg", None)
        self._way.forget(comm)

    def pump(self) -> None:
        """Answer waiting messages now, at most 50 times a second; for every step boundary."""
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
        self._way.tell_myself(comm.comm_id, {"v": 1, "type": "ping", "token": token})
        deadline = time.monotonic() + timeout_s
        # The pump handles the ping on this thread, if no other thread reads messages.
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
            # Late, but not on the main thread: the way works, only the machine was busy.
            self._works = True

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        """Call ``callback`` after every notebook cell, with its error; returns its removal."""
        return self._notebook.on_cell_end(callback)


def kernel_route() -> KernelRoute:
    """Return the only route of this kernel, built at the first call.

    Examples
    --------
    >>> kernel_route().name  # in a plain script
    'no kernel'
    """
    with widget_lock:
        marimo = marimo_kernel()
        if marimo is None:
            return _route_of_process()
        if KEPT_AS not in vars(marimo):  # it goes when the kernel goes, of which a server has many
            vars(marimo)[KEPT_AS] = KernelRoute(MarimoNotebook(marimo))
        route: KernelRoute = vars(marimo)[KEPT_AS]
        return route


@functools.cache
def _route_of_process() -> KernelRoute:
    shell = get_ipython()
    has_kernel = getattr(shell, "kernel", None) is not None
    return KernelRoute(JupyterNotebook(shell) if has_kernel else NoNotebook())


def _keep_figures(comm: Any) -> None:
    """Leave IPython's execute events out of a panel message.

    They make matplotlib show and close the figure that the running cell is drawing.
    """

    def handle_msg(message: dict[str, Any]) -> None:
        if comm._msg_callback is not None:
            comm._msg_callback(message)

    if "_msg_callback" in vars(comm):
        # On the instance, as other widgets of the kernel keep the usual behavior.
        vars(comm)["handle_msg"] = handle_msg
