"""The way in on the same machine: a Unix socket, served by one thread."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

from notebook_probe.run.remote_control.desk import Desk, OpenRequest
from notebook_probe.run.remote_control.letters import (
    MOST_ANSWER_BYTES,
    MOST_LETTER_BYTES,
    Answer,
    answer_bytes,
)
from notebook_probe.uninterrupted import join

__all__ = ["SocketServer"]

MOST_CONNECTIONS = 16
LOOK_S = 1.0
"""Seconds after which the thread checks whether the run is still there."""
END_S = 2.0
"""Seconds that the end of a run waits for the last answers."""
AT_ONCE = 2**16
PEER = struct.Struct("3i")
"""Process, user and group of a peer, as Linux has it."""


class _Connection:
    """One asking process."""

    def __init__(self, peer: socket.socket, sender: str) -> None:
        self.peer, self.sender = peer, sender
        self.received, self.to_send = bytearray(), bytearray()
        self.open: list[OpenRequest] = []

    def answer(self, answer: Answer) -> None:
        self.to_send += answer_bytes(answer)


class SocketServer:
    """A thread that takes letters, one per line, and sends answers.

    Parameters
    ----------
    desk : Desk
    path : Path
        Path of the socket, in a folder that only this user can open.

    Raises
    ------
    OSError
        The socket cannot be made.
    """

    def __init__(self, desk: Desk, path: Path) -> None:
        self._desk, self.path = desk, path
        self._pid = os.getpid()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listening.bind(str(path))
            self._listening.listen(MOST_CONNECTIONS)
        except OSError:
            self._listening.close()
            raise
        self._listening.setblocking(False)
        self._news, self._waker = socket.socketpair()
        self._news.setblocking(False)
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._news, selectors.EVENT_READ)
        self._connections: dict[socket.socket, _Connection] = {}
        self._left: list[OpenRequest] = []
        self._is_ending = False
        self._thread = threading.Thread(
            target=self._serve, name="notebook_probe control socket", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread to look for decided tickets; from any thread, without waiting."""
        with suppress(OSError):  # full, which wakes it as well, or closed
            self._waker.send(b"\0")

    def close(self) -> None:
        """Send the last answers and remove the socket; a forked child leaves it to its parent."""
        if os.getpid() != self._pid or self._is_ending:
            return
        self._is_ending = True
        self.wake()
        join(self._thread, END_S)

    def _serve(self) -> None:
        try:
            while not self._is_ending and self._desk.is_open:
                self._turn()
        finally:
            self._finish()

    def _turn(self) -> None:
        for key, ready in self._selector.select(LOOK_S):
            if key.fileobj is self._listening:
                self._accept()
            elif key.fileobj is self._news:
                with suppress(OSError):
                    self._news.recv(AT_ONCE)
            else:
                self._serve_one(self._connections[key.fileobj], ready)  # type: ignore[index]
        for one in [*self._connections.values()]:
            self._answer_decided(one)
            self._send(one)
        for each in [one for one in self._left if one.is_decided]:
            each.answer()  # its asker has gone; the record has an event of it
            self._left.remove(each)
        self._desk.note_refused()

    def _accept(self) -> None:
        try:
            peer, _ = self._listening.accept()
        except OSError:  # it has gone, or this process has too many files open
            return
        peer.setblocking(False)
        user, sender = _peer_of(peer)
        if user not in (None, os.getuid()) or len(self._connections) >= MOST_CONNECTIONS:
            self._desk.refuse("too many" if user in (None, os.getuid()) else "of another user", "")
            peer.close()
            return
        self._connections[peer] = _Connection(peer, sender)
        self._selector.register(peer, selectors.EVENT_READ)

    def _serve_one(self, one: _Connection, ready: int) -> None:
        if ready & selectors.EVENT_READ:
            try:
                received = one.peer.recv(AT_ONCE)
            except BlockingIOError:
                return
            except OSError:
                received = b""
            if not received:
                self._drop(one)
                return
            one.received += received
            self._take_lines(one)

    def _take_lines(self, one: _Connection) -> None:
        while (end := one.received.find(b"\n")) >= 0:
            line = bytes(one.received[:end])
            del one.received[: end + 1]
            taken = self._desk.take(line, one.sender)
            if isinstance(taken, OpenRequest):
                one.open.append(taken)
                one.answer(taken.answer())
                if taken.is_decided:
                    one.open.remove(taken)
            else:
                one.answer(taken)
        if len(one.received) > MOST_LETTER_BYTES:
            # The rest of it is not waited for.
            one.answer(self._desk.take(bytes(one.received), one.sender))  # type: ignore[arg-type]
            self._send(one)
            self._drop(one)

    def _answer_decided(self, one: _Connection) -> None:
        decided = [each for each in one.open if each.is_decided]
        for each in decided:
            one.answer(each.answer())
            one.open.remove(each)

    def _send(self, one: _Connection) -> None:
        if one.peer not in self._connections:
            return
        try:
            while one.to_send:
                del one.to_send[: one.peer.send(one.to_send)]
        except BlockingIOError:
            if len(one.to_send) > MOST_ANSWER_BYTES:  # it reads no answers
                self._drop(one)
                return
        except OSError:
            self._drop(one)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if one.to_send else 0)
        self._selector.modify(one.peer, wanted)

    def _drop(self, one: _Connection) -> None:
        """Forget an asking process; what it asked for is done all the same."""
        if self._connections.pop(one.peer, None) is not None:
            self._left += one.open
            one.open = []
            self._selector.unregister(one.peer)
            one.peer.close()

    def _finish(self) -> None:
        for one in [*self._connections.values()]:
            self._answer_decided(one)
            for each in one.open:
                one.answer(each.give_up())
            self._send(one)
            self._drop(one)
        self._desk.note_refused(at_once=True)
        self._selector.close()
        for end in (self._listening, self._news, self._waker):
            end.close()
        with suppress(OSError):
            self.path.unlink()


def _peer_of(peer: socket.socket) -> tuple[int | None, str]:
    """Return the user of a peer, if the system tells, and the peer in words."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None, ""
    try:
        pid, user, _ = PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, option, PEER.size))
    except OSError:
        return None, ""
    return user, f"process {pid}"
