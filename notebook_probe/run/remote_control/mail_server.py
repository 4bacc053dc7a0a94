"""The way in from everywhere: a mailbox, read once a second by one thread."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from notebook_probe.run.remote_control.coding import Coding
from notebook_probe.run.remote_control.desk import Desk, OpenRequest
from notebook_probe.run.remote_control.letters import (
    KEY,
    MOST_LETTER_BYTES,
    NO_LETTER,
    VERSION,
    Answer,
    answer_bytes,
)
from notebook_probe.run.remote_control.mail import Mail
from notebook_probe.run.remote_control.places import ANNOUNCED, Announcement
from notebook_probe.uninterrupted import join

__all__ = ["MailServer"]

READ_S = 1.0
MOST_LETTERS = 100
"""Letters that are read at a time; the others wait."""
KEPT_S = 60.0
"""Seconds after which an answer is removed that was not fetched."""
END_S = 5.0


class MailServer:
    """A thread that takes letters from a mailbox and leaves answers there.

    Parameters
    ----------
    desk : Desk
    mail : Mail

    Attributes
    ----------
    problem : str
        The last error of the store, as text; the thread tries again.
    """

    def __init__(self, desk: Desk, mail: Mail) -> None:
        self._desk, self._mail = desk, mail
        self._pid = os.getpid()
        self._open: list[OpenRequest] = []
        self._left: dict[str, float] = {}
        self.problem = ""
        self._is_ending = False
        self._wake = threading.Event()
        mail.begin()
        announced = Announcement(VERSION, desk.session, socket.gethostname(), self._pid)
        mail.write(ANNOUNCED, json.dumps(Coding({}).plain(announced)).encode())
        self._thread = threading.Thread(
            target=self._serve, name="notebook_probe control mailbox", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread to look for decided tickets; from any thread, without waiting."""
        self._wake.set()

    def close(self) -> None:
        """Leave the last answers; a forked child leaves that to its parent."""
        if os.getpid() == self._pid and not self._is_ending:
            self._is_ending = True
            self.wake()
            join(self._thread, END_S)

    def _serve(self) -> None:
        while self._goes_on():
            begun_s = time.monotonic()
            self._attempt(self._read)
            while self._goes_on() and (left_s := begun_s + READ_S - time.monotonic()) > 0:
                if self._wake.wait(left_s):
                    self._wake.clear()
                    self._attempt(self._answer)
        with suppress(Exception):
            self._finish()

    def _goes_on(self) -> bool:
        return not self._is_ending and self._desk.is_open

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
            self.problem = ""
        except Exception as error:  # a network folder may be gone for a while
            self.problem = f"{type(error).__name__}: {error}"
            # Who waits for an answer could not fetch it meanwhile, either.
            self._left = dict.fromkeys(self._left, time.monotonic())

    def _answer(self) -> None:
        """Leave the answers of decided requests; one that cannot be left is tried again."""
        for one in [one for one in self._open if one.is_decided]:
            self._leave_answer(one.answer())
            self._open.remove(one)

    def _read(self) -> None:
        self._take_letters()
        self._answer()
        self._desk.note_refused()
        now_s = time.monotonic()
        for key in [key for key, left_s in self._left.items() if now_s - left_s > KEPT_S]:
            self._mail.delete(key)
            del self._left[key]

    def _take_letters(self) -> None:
        sizes = self._mail.sizes("in")
        # By name, which begins with the time: one process's requests act in their order.
        for key, size in sorted(sizes.items())[:MOST_LETTERS]:
            name = key.removeprefix("in/")
            if name.endswith(".partial") and size <= MOST_LETTER_BYTES:
                continue  # it is being written
            taken = self._take(key, size)
            if isinstance(taken, OpenRequest):
                self._open.append(taken)
            elif taken.id != NO_LETTER:
                self._leave_answer(taken)

    def _take(self, key: str, size: int) -> OpenRequest | Answer:
        """Read a letter and remove it, before it acts: it must not act twice."""
        letter_id = key.removeprefix("in/").removesuffix(".json")
        named_well = key == f"in/{letter_id}.json" and KEY.fullmatch(letter_id)
        too_large = size > MOST_LETTER_BYTES
        sender = self._mail.sender(key)
        content = None if too_large or not named_well else self._mail.read(key, MOST_LETTER_BYTES)
        self._mail.delete(key)
        if content is None:
            return self._desk.refuse("malformed", "no letter")
        return self._desk.take(content, sender, letter_id)

    def _leave_answer(self, answer: Answer) -> None:
        key = f"out/{answer.id}.json"
        self._mail.write(key, answer_bytes(answer))
        self._left[key] = time.monotonic()

    def _finish(self) -> None:
        self._mail.delete(ANNOUNCED)
        for one in self._open:
            self._leave_answer(one.give_up())
        self._desk.note_refused(at_once=True)
        for key in self._mail.sizes("in"):
            self._mail.delete(key)
        if not self._mail.sizes("out"):  # else they may still be fetched
            self._mail.end()
