"""Trials, each in a separate process with a time limit, so that none can stop the others."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from contextlib import suppress

import torch

from benchmarks.zoo.architectures import Architecture
from benchmarks.zoo.outcome import Outcome
from benchmarks.zoo.trial import tried

__all__ = ["tried_apart"]


def tried_apart(one: Architecture, most_weights: int, limit_s: float) -> Outcome:
    """Try an architecture in a fork of this process, which has imported everything."""
    torch.set_num_threads(1)  # a thread pool would not survive the fork
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        logging.getLogger("notebook_probe").setLevel(logging.WARNING)  # in the child alone
        outcome = _outcome(one, most_weights, limit_s)
        with suppress(BaseException), os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(outcome._asdict()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    if told:
        return Outcome(**json.loads(told))
    return Outcome(one.library, one.name, skipped="the process ended")


class _TooLong(BaseException):
    pass


def _outcome(one: Architecture, most_weights: int, limit_s: float) -> Outcome:
    def is_late(*_: object) -> None:
        raise _TooLong

    begun = time.monotonic()
    signal.signal(signal.SIGALRM, is_late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return tried(one, most_weights)
    except _TooLong:
        seconds = round(time.monotonic() - begun, 1)
        skipped = f"takes longer than the limit: {limit_s:.0f} s"
        return Outcome(one.library, one.name, skipped=skipped, seconds=seconds)
    except BaseException as error:
        return Outcome(one.library, one.name, different=[f"{type(error).__name__}: {error}"[:300]])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
