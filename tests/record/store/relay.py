"""A relay in front of a server of the tests, which can stop answering and be gone for a while."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

__all__ = ["Relay", "relay_of"]

AT_ONCE = 2**16


class Relay:
    """Bytes between clients and a server, on an address that stays the same.

    Parameters
    ----------
    endpoint : str
        URL of the server.
    """

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._server = parts.hostname, parts.port
        self._flows = threading.Event()
        self._open: set[socket.socket] = set()
        self._port = 0
        self._listener = self._listen()
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self._flows.set()

    def hang(self) -> None:
        """Take connections and bytes, and pass nothing on: a server that is stuck."""
        self._flows.clear()

    def refuse(self) -> None:
        """Close the port and every connection: a server that is not running."""
        # Woken first: a thread that waits in accept() would keep the port open.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in [*self._open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._flows.set()

    def resume(self) -> None:
        """Pass on everything again; what waited as well."""
        if self._listener.fileno() < 0:
            self._listener = self._listen()
        self._flows.set()

    def _listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", self._port), backlog=100)
        self._port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:  # the server has ended before the tests
                client.close()
                continue
            for source, target in ((client, server), (server, client)):
                self._open.add(source)
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while received := source.recv(AT_ONCE):
                self._flows.wait()
                target.sendall(received)
        self._open.discard(source)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def relay_of(endpoint: str) -> Iterator[Relay]:
    """Yield a relay of the server at ``endpoint``; it ends with the block."""
    relay = Relay(endpoint)
    try:
        yield relay
    finally:
        relay.refuse()
