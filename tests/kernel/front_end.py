"""A front end over the Jupyter protocol: sends like JupyterLab or VS Code, keeps all it hears."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

Message = dict[str, Any]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0  # a busy machine; nothing waits this long when it works


class FrontEnd:
    """One kernel and the only front end connected to it."""

    def __init__(self, python: Path) -> None:
        self.manager = KernelManager()
        spec = self.manager.kernel_spec
        assert spec is not None
        spec.argv[0] = str(python)
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=str(ROOT))
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.heard: list[Message] = []  # iopub, in order
        self.replies: list[Message] = []  # shell, in order
        version = self.run("import ipykernel; print(*ipykernel.version_info[:2])")
        self.version = tuple(map(int, version.split()))

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    # ------------------------------------------------------------------------------- sending

    def send(
        self,
        msg_type: str,
        content: dict[str, Any],
        subshell_id: str | None = None,
        buffers: Sequence[bytes] = (),
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Send on the shell channel and return the message's id."""
        session = self.client.session
        message = session.msg(msg_type, content, metadata=metadata)
        message["header"]["subshell_id"] = subshell_id
        if subshell_id is None:
            del message["header"]["subshell_id"]
        session.send(self.client.shell_channel.socket, message, buffers=list(buffers))
        return str(message["header"]["msg_id"])

    def execute(self, code: str) -> str:
        return str(self.client.execute(code))

    def custom(self, comm_id: str, content: dict[str, Any], **more: Any) -> str:
        """A widget's custom message, as a click in a panel sends it."""
        data = {"method": "custom", "content": content}
        return self.send("comm_msg", {"comm_id": comm_id, "data": data}, **more)

    def new_subshell(self) -> str | None:
        """What JupyterLab asks for before its first comm message, and again after a reload."""
        if self.version < (7,):
            return None
        session, channel = self.client.session, self.client.control_channel
        channel.send(session.msg("create_subshell_request"))
        return str(channel.get_msg(timeout=PATIENCE_S)["content"]["subshell_id"])

    # ------------------------------------------------------------------------------- hearing

    def listen(self, timeout_s: float = 0.02) -> None:
        """Take in whatever arrives."""
        iopub, shell = self.client.iopub_channel, self.client.shell_channel
        if iopub.socket.poll(int(timeout_s * 1000)):
            while iopub.socket.poll(0):
                self.heard.append(iopub.get_msg(timeout=1))
        while shell.socket.poll(0):
            self.replies.append(shell.get_msg(timeout=1))

    def until(self, condition: Callable[[], Any], why: str) -> Any:
        """Listen until the condition holds, and return what it found."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"never happened: {why}"
            self.listen()
        return found

    def reply(self, msg_id: str) -> Message | None:
        found = [m for m in self.replies if m["parent_header"].get("msg_id") == msg_id]
        return found[0]["content"] if found else None

    def finish(self, msg_id: str) -> Message:
        """Content of the request's reply, once its outputs have arrived too."""
        self.until(lambda: self.reply(msg_id) and self.is_idle(msg_id), "the reply")
        reply = self.reply(msg_id)
        assert reply is not None
        return reply

    def is_idle(self, msg_id: str) -> bool:
        states = [m["content"]["execution_state"] for m in self.about(msg_id, "status")]
        return "idle" in states

    def about(self, msg_id: str, msg_type: str) -> list[Message]:
        """What the kernel published while handling this request."""
        return [
            m
            for m in self.heard
            if m["msg_type"] == msg_type and m["parent_header"].get("msg_id") == msg_id
        ]

    def text(self, msg_id: str) -> str:
        return "".join(m["content"]["text"] for m in self.about(msg_id, "stream"))

    def from_comm(self, comm_id: str) -> list[Message]:
        """What this comm has sent, oldest first."""
        return [
            m
            for m in self.heard
            if m["msg_type"] == "comm_msg" and m["content"]["comm_id"] == comm_id
        ]

    def echoes(self, comm_id: str) -> list[dict[str, Any]]:
        return [m["content"]["data"]["echo"] for m in self.from_comm(comm_id)]

    def run(self, code: str) -> str:
        """Run a short cell and return what it printed."""
        msg_id = self.execute(code)
        reply = self.finish(msg_id)
        assert reply["status"] == "ok", "\n".join(reply.get("traceback", []))
        return self.text(msg_id)
