"""Lines to a training in another process: the socket if it is on this machine, or its mailbox."""

from __future__ import annotations

import getpass
import os
import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

from notebook_probe.errors import ProbeError
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.remote.reached import reaching
from notebook_probe.record.store.writing import find_writer
from notebook_probe.run.remote_control.coding import LetterError
from notebook_probe.run.remote_control.letters import (
    MOST_ANSWER_BYTES,
    NO_LETTER,
    VERSION,
    Answer,
    Ask,
    Letter,
    letter_bytes,
    read_answer,
)
from notebook_probe.run.remote_control.mail import Mail, mail_of
from notebook_probe.run.remote_control.places import (
    ANNOUNCED,
    LONGEST_TEXT,
    place_of_record,
    read_announcement,
    socket_paths,
)

__all__ = ["ControlLine", "LineError", "Way", "open_line", "whoami"]

Way: TypeAlias = Literal["socket", "mailbox"]

AT_ONCE = 2**16
CONNECT_S = 1.0
CHECK_S = 2.0
STORE = "the store of this record"
HOW = "start the training with nbp.watch(..., control=True) or NOTEBOOK_PROBE_CONTROL=1"


class LineError(ProbeError, ConnectionError):
    """A training that does not answer, or allows no control."""


class ControlLine(Protocol):
    """Line to one training. Its methods may raise LineError or StoreSilentError."""

    way: Way
    session: str
    """The training at its other end; another one of the same record has another session."""
    poll_s: float
    """Seconds between two looks for news that spare the training and the store."""

    def send(self, ask: Ask, letter_id: str) -> None:
        """Send a letter with this id, of `new_id`."""

    def answers(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        """Return the answers that have come to these letters; waits for one until the timeout."""

    def answers_or_end(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        """Return `answers`; raise LineError if the training has ended, or was started again."""

    def take_back(self, letter_id: str) -> bool:
        """Take a letter back that was not read; return whether it was."""

    def close(self) -> None:
        """End it; what was asked for is done all the same."""


def open_line(location: Location, who: str) -> ControlLine:
    """Return a line to the training that writes a record.

    Parameters
    ----------
    location : path, URL or store
    who : str
        Text that names the sender.

    Raises
    ------
    LineError
        No training writes it, or it allows no control.
    StoreSilentError
        The record's store does not answer.
    """
    mail = mail_of(location)
    session = _session_of(mail, location)
    for path in socket_paths(session):
        if path.exists():
            with suppress(OSError):
                return SocketLine(str(path), _Address(session, place_of_record(location), who))
    return MailLine(mail, location, _Address(session, "", who))


def _session_of(mail: Mail, location: Location) -> str:
    with reaching(STORE):
        content = mail.read(ANNOUNCED, LONGEST_TEXT)
        is_written = find_writer(location)
    if not is_written:
        raise LineError(f"{location}: no process trains this run now")
    if content is None:
        raise LineError(f"{location}: this run allows no control: {HOW}")
    try:
        return read_announcement(content).session
    except LetterError as error:
        raise LineError(f"{location}: {error}") from error


class _Address:
    """The training that is meant, and who asks."""

    def __init__(self, session: str, place: str, who: str) -> None:
        self.session, self._place, self._who = session, place, who

    def letter(self, ask: Ask, letter_id: str) -> Letter:
        return Letter(VERSION, letter_id, self.session, self._place, self._who, ask)


class SocketLine:
    """A connection to the socket of a training."""

    way: Way = "socket"
    poll_s = 0.25

    def __init__(self, path: str, address: _Address) -> None:
        self._address, self.session = address, address.session
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._received = bytearray()
        try:
            self._socket.settimeout(CONNECT_S)
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def send(self, ask: Ask, letter_id: str) -> None:
        content = letter_bytes(self._address.letter(ask, letter_id))
        try:
            self._socket.sendall(content)
        except OSError as error:
            raise LineError(f"the training does not answer: {error}") from error

    def answers(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        known = [one for one in waiting if one]
        found = self._parsed(known)
        deadline_s = time.monotonic() + timeout_s
        while not found and (left_s := deadline_s - time.monotonic()) > 0:
            ready, _, _ = select.select([self._socket], [], [], left_s)
            if ready:
                self._receive()
            found = self._parsed(known)
        return found

    def answers_or_end(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        return self.answers(waiting, timeout_s)  # which reads the end of the connection

    def take_back(self, letter_id: str) -> bool:
        return False

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> None:
        try:
            received = self._socket.recv(AT_ONCE)
        except OSError as error:
            raise LineError(f"the training does not answer: {error}") from error
        if not received:
            raise LineError("the training has closed the line: its run has ended")
        self._received += received
        if len(self._received) > MOST_ANSWER_BYTES:
            raise LineError("the answer is too long")

    def _parsed(self, known: list[str]) -> list[Answer]:
        """Return answers to these letters; one that was not read is the oldest of them."""
        found = []
        for one in self._lines():
            if one.id == NO_LETTER and known:
                found.append(replace(one, id=known[0]))
            elif one.id in known:
                found.append(one)
        return found

    def _lines(self) -> Iterator[Answer]:
        while (end := self._received.find(b"\n")) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            yield read_answer(line)


class MailLine:
    """Letters in the mailbox of a record, and answers that are fetched from there."""

    way: Way = "mailbox"

    def __init__(self, mail: Mail, location: Location, address: _Address) -> None:
        self._mail, self._location, self._address = mail, location, address
        self.session = address.session
        self._checked_s = time.monotonic()
        self.poll_s = max(1.0, mail.poll_s)

    def send(self, ask: Ask, letter_id: str) -> None:
        content = letter_bytes(self._address.letter(ask, letter_id))
        with _reaching():
            self._mail.write(f"in/{letter_id}.json", content)

    def answers(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        known = [one for one in waiting if one]
        deadline_s = time.monotonic() + timeout_s
        while True:
            found = [answer for one in known if (answer := self._fetched(one)) is not None]
            left_s = deadline_s - time.monotonic()
            if found or left_s <= 0:
                return found
            time.sleep(min(self._mail.poll_s, left_s))

    def answers_or_end(self, waiting: Iterable[str], timeout_s: float) -> list[Answer]:
        known = [*waiting]
        found = self.answers(known, timeout_s)
        if found or time.monotonic() - self._checked_s < CHECK_S:
            return found
        self._checked_s = time.monotonic()
        try:
            if _session_of(self._mail, self._location) != self._address.session:
                raise LineError("the training was started again")
        except LineError:
            last = self.answers(known, 0.0)  # left at its end
            if last:
                return last
            raise
        return found

    def take_back(self, letter_id: str) -> bool:
        key = f"in/{letter_id}.json"
        with _reaching():
            is_there = key in self._mail.sizes("in")
            self._mail.delete(key)
        return is_there

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _fetched(self, letter_id: str) -> Answer | None:
        key = f"out/{letter_id}.json"
        with _reaching():
            content = self._mail.read(key, MOST_ANSWER_BYTES)
            if content is None:
                return None
            self._mail.delete(key)
        return read_answer(content)


@contextmanager
def _reaching() -> Iterator[None]:
    """Raise LineError if the mailbox has ended, StoreSilentError if its store does not answer."""
    try:
        with reaching(STORE):
            yield
    except FileNotFoundError as error:
        raise LineError("the training has closed its mailbox: its run has ended") from error


def whoami(program: str) -> str:
    """Return who asks, as text.

    Examples
    --------
    >>> whoami("nbp").startswith("nbp of ")
    True
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without names of users
        user = str(os.getpid())
    return f"{program} of {user} on {socket.gethostname()}"[:200]
