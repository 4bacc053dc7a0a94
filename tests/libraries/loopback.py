"""Servers on this machine that take messages: a webhook, and a mailbox by SMTP."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

__all__ = ["mailbox", "webhook"]


@contextmanager
def webhook(status: int = 200) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Serve a webhook; its port, and the JSON objects that it gets."""
    taken: list[dict[str, Any]] = []

    class Taker(BaseHTTPRequestHandler):
        """Answers each POST in one way."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with _serving(HTTPServer(("127.0.0.1", 0), Taker)) as port:
        yield port, taken


@contextmanager
def mailbox() -> Iterator[tuple[int, list[str]]]:
    """Serve as much of SMTP as a mail needs; its port, and the mails."""
    mails: list[str] = []

    class Taker(socketserver.StreamRequestHandler):
        """Takes every mail, from everybody."""

        def handle(self) -> None:
            self._say("220 here")
            for line in self.rfile:
                word = line.split(b":")[0].split()[0].upper()
                if word == b"DATA":
                    self._say("354 go on")
                    mails.append(self._mail())
                elif word == b"QUIT":
                    self._say("221 bye")
                    return
                self._say("250 fine")

        def _mail(self) -> str:
            lines = iter(self.rfile.readline, b".\r\n")
            return b"".join(lines).decode()

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Taker)) as port:
        yield port, mails


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield int(server.socket.getsockname()[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
