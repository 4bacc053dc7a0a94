"""Every door of a run, interrupted anywhere: called again it completes, and nothing is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import pytest
from torch.optim import SGD

from tests.run.interrupts.doors import DOORS
from tests.run.interrupts.interrupting import count, interrupted

PARTS = 4
"""An exhaustive search is split: a failure then ends a part of it alone."""
TIMERS = 1000
RETRY_S = 20e-6
SGD_FILE = SGD._init_group.__code__.co_filename

pytestmark = [
    pytest.mark.usefixtures("interruptible"),
    # Python ignores an interrupt in a generator that is being collected, and says so.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


MOST_PLAYS = 6
"""Plays until the number of points is the same twice."""


def n_points(door: str, folder: Path, *, opcodes: bool = False) -> int:
    """At how many points the door can be interrupted, once nothing more is imported on its way.

    The fewest of the plays: on a busy machine one that waits passes some lines more often.
    """
    counts: list[int] = []
    while len(counts) < MOST_PLAYS and (len(counts) < 2 or counts[-1] != counts[-2]):
        DOORS[door].play(folder, lambda act: counts.append(count(act, opcodes=opcodes)))
    return min(counts)


@pytest.mark.parametrize("point", [8, 70])
@pytest.mark.parametrize("door", DOORS)
def test_a_door_that_was_interrupted_can_be_used_again(
    door: str, point: int, tmp_path: Path
) -> None:
    DOORS[door].play(tmp_path, lambda act: interrupted(act, point))


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_it_can_be_interrupted_at_lines_all_over_it(door: str, tmp_path: Path) -> None:
    n = n_points(door, tmp_path)
    interrupt_at_lines(door, tmp_path, range(1, n + 1, max(30, n // 40)))


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("door", DOORS)
def test_it_can_be_interrupted_at_every_line(door: str, part: int, tmp_path: Path) -> None:
    interrupt_at_lines(door, tmp_path, range(1 + part, n_points(door, tmp_path) + 1, PARTS))


def interrupt_at_lines(door: str, folder: Path, points: Iterable[int]) -> None:
    reached = list[str]()
    for point in points:
        DOORS[door].play(folder, partial(_note, reached, point))
    assert sum(map(bool, reached)) > 0.9 * len(reached)


def _note(reached: list[str], point: int, act: Callable[[], None]) -> None:
    reached.append(interrupted(act, point))


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("door", DOORS)
def test_it_can_be_interrupted_at_single_instructions(door: str, tmp_path: Path) -> None:
    """As above, between the instructions of a line, at some hundred places."""
    n = n_points(door, tmp_path, opcodes=True)
    for point in range(1, n + 1, max(1, n // 150)):
        DOORS[door].play(tmp_path, partial(interrupted, n=point, opcodes=True))


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("door", DOORS)
def test_it_can_be_interrupted_at_a_thousand_moments(door: str, tmp_path: Path) -> None:
    """By a timer, also within the libraries that are called."""
    lasts: list[float] = []

    def timed(act: Callable[[], None]) -> None:
        begun = time.perf_counter()
        act()
        lasts.append(time.perf_counter() - begun)

    for _ in range(5):
        DOORS[door].play(tmp_path, timed)
    longest = sorted(lasts)[2]
    for n in range(TIMERS):
        DOORS[door].play(tmp_path, partial(_after, longest * (n + 0.5) / TIMERS))


def _after(seconds: float, act: Callable[[], None]) -> None:
    """Call ``act``, interrupted after some time."""
    signal.signal(signal.SIGALRM, _interrupt)
    with suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            act()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt what runs, or wait while torch writes to one weight after another.

    There it leaves half an update, whoever watches.
    """
    files = {code.co_filename for code in _codes(frame)}
    if SGD_FILE in files:
        signal.setitimer(signal.ITIMER_REAL, RETRY_S)
    else:
        signal.raise_signal(signal.SIGINT)


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    """Yield the code of each function that runs, the innermost first."""
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back
