"""Ways through a kernel subshell of our own, which ipykernel has from 7.1 on."""

from __future__ import annotations

from typing import Any

import zmq
from comm.base_comm import BaseComm

from notebook_probe.explorer.notebooks.channels import JupyterWay, comm_message, create_subshell

__all__ = ["AskedByComm", "Readdressed"]


class AskedByComm(JupyterWay):
    """ipykernel 7.4: a comm names the subshell that handles its messages, so ours name our own."""

    def __init__(self, kernel: Any) -> None:
        super().__init__("own subshell")
        from ipykernel.comm.comm import BaseComm as KernelComm

        _ = KernelComm._reply_subshell_for
        self._subshell_id = create_subshell()

    def carry(self, comm: BaseComm) -> None:
        subshell_id = self._subshell_id
        # Runs in the thread that receives every message of the kernel: no lock, no work.
        vars(comm)["_reply_subshell_for"] = lambda data, default: subshell_id

    def forget(self, comm: BaseComm) -> None:
        vars(comm).pop("_reply_subshell_for", None)


class Readdressed(JupyterWay):
    """ipykernel 7.1 to 7.3: our messages get our own subshell's address as they arrive."""

    def __init__(self, kernel: Any) -> None:
        super().__init__("own subshell")
        self._session = kernel.session
        self._deliver = kernel.shell_channel_thread_main
        loop, stream = kernel.shell_channel_thread.io_loop, kernel.shell_stream
        self._subshell_id = create_subshell()
        loop.add_callback(stream.on_recv, self._receive, copy=False)

    def _receive(self, frames: list[zmq.Frame]) -> Any:
        found = comm_message(self._session, frames, self.carried)
        if found is not None:
            identities, message = found
            message["header"]["subshell_id"] = self._subshell_id
            head = self._session.serialize(message, identities)
            frames = [zmq.Frame(part) for part in head] + frames[len(head) :]
        return self._deliver(frames)
