"""A notebook of the Jupyter family: IPython runs its cells, ipykernel receives messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import zmq
from IPython.core.interactiveshell import ExecutionResult
from IPython.display import display
from traitlets import TraitError

from notebook_probe.explorer.notebooks.notebook import CellEnded, Shown
from notebook_probe.explorer.notebooks.pump import Pump
from notebook_probe.explorer.notebooks.subshell import AskedByComm, Readdressed
from notebook_probe.explorer.notebooks.way import MessageWay

__all__ = ["JupyterNotebook"]

# A private name that is missing, no connection file, a control channel that does not answer, or is
# of a client that takes no context of this zmq.
UNSUITED = (
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    TraitError,
    zmq.ZMQError,
)


class JupyterNotebook:
    """The notebook of an IPython shell inside a kernel."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.way = _choose(shell.kernel)

    @property
    def cell(self) -> str:
        get_parent = getattr(self._shell, "get_parent", None)
        parent = {} if get_parent is None else get_parent()
        return str(parent.get("metadata", {}).get("cellId", ""))

    @property
    def execution(self) -> int:
        return int(self._shell.execution_count)

    def display(self, widget: Shown) -> None:
        data, metadata = widget.bundle()  # display(widget) would come back here
        display(data, metadata=metadata, raw=True)

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        shell = self._shell

        def cell_ended(result: ExecutionResult) -> None:
            callback(result.error_in_exec)

        def remove() -> None:
            with suppress(ValueError):  # removed before
                shell.events.unregister("post_run_cell", cell_ended)

        shell.events.register("post_run_cell", cell_ended)
        return remove


def _choose(kernel: Any) -> MessageWay:
    """Return the first way that this kernel supports."""
    for way in (AskedByComm, Readdressed, Pump):
        with suppress(*UNSUITED):
            return way(kernel)
    return MessageWay("after the cell")
