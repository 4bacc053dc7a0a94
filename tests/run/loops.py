"""A training in the background, and waiting for what it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control, Request, Ticket
from tests.models import floats, sgd, train_step

PATIENCE_S = 60.0
MANY = 1_000_000

batch = floats(5, 4)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)


def applied(run: nbp.Run, request: Request) -> Ticket:
    """Put a request and wait until the training thread has seen it."""
    ticket = run.controls.put(request)
    wait_until(lambda: ticket.state != "queued")
    return ticket


def held_at(run: nbp.Run) -> int:
    """Wait until the training is held, and say before which step."""
    wait_until(lambda: run.status().state == "paused")
    return run.status().step


class Training:
    """A training that runs in the background until it is told to end."""

    def __init__(self, run: nbp.Run, model: nn.Module, by_hand: bool = False) -> None:
        self.run, self.n_steps = run, 0
        self._optimizer = None if by_hand else sgd(model)
        self._model = model
        self.background = run.train_in_background(self._loop)

    def _loop(self) -> str:
        while self.n_steps < MANY:
            if self._optimizer is None:
                self._model(batch(self.n_steps)).square().mean().backward()
                self.run.step()
            else:
                train_step(self._model, self._optimizer, batch(self.n_steps))
            self.n_steps += 1
        return "done"

    def end(self) -> None:
        self.run.controls.put(Control("stop"))
        self.background.wait(PATIENCE_S)


@contextmanager
def training(run: nbp.Run, model: nn.Module, by_hand: bool = False) -> Iterator[Training]:
    begun = Training(run, model, by_hand)
    try:
        yield begun
    finally:
        begun.end()
