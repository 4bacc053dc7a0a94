"""Ways through a separate kernel subshell, which ipykernel has from 7.1 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zmq

from notebook_probe.explorer.notebooks.channels import JupyterWay, Wanted, create_subshell

if TYPE_CHECKING:  # Colab has none
    from comm.base_comm import BaseComm

__all__ = ["AskedByComm", "Readdressed"]


class Readdressed(JupyterWay):
    """ipykernel 7.1 to 7.3: what we answer gets our own subshell's address as it arrives."""

    def __init__(self, kernel: Any) -> None:
        super().__init__("own subshell")
        self._wanted = Wanted(kernel.session, self.carried)
        self._deliver = kernel.shell_channel_thread_main
        loop, stream = kernel.shell_channel_thread.io_loop, kernel.shell_stream
        self._subshell_id = create_subshell()
        # In the thread that owns the stream: zmq sockets must not be used from two threads.
        loop.add_callback(stream.on_recv, self._receive, copy=False)

    def _receive(self, frames: list[zmq.Frame]) -> Any:
        # Runs in the thread that receives every message of the kernel: no lock, little work.
        found = self._wanted.among(frames)
        if found is not None:
            identities, message = found
            # A reloaded page may name a subshell that exists no more.
            message["header"]["subshell_id"] = self._subshell_id
            head = self._wanted.session.serialize(message, identities)
            frames = [zmq.Frame(part) for part in head] + frames[len(head) :]
        return self._deliver(frames)


class AskedByComm(Readdressed):
    """ipykernel 7.4: a comm names the subshell that handles its messages, so ours name our own."""

    def __init__(self, kernel: Any) -> None:
        from ipykernel.comm.comm import BaseComm as KernelComm

        # AttributeError in versions before: then `_choose` tries the next way.
        _ = KernelComm._reply_subshell_for
        super().__init__(kernel)

    def carry(self, comm: BaseComm) -> None:
        subshell_id = self._subshell_id
        vars(comm)["_reply_subshell_for"] = lambda data, default: subshell_id

    def forget(self, comm: BaseComm) -> None:
        vars(comm).pop("_reply_subshell_for", None)
