"""What is dear to make is made at most once a second, and less often where it takes long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notebook_probe.explorer.messages.throttled import EVERY_S, SHARE, Throttled


class Clock:
    """Wall time and the CPU time of the one thread, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s = self.cpu_s = 100.0
        module = "notebook_probe.explorer.messages.throttled.time"
        monkeypatch.setattr(f"{module}.monotonic", lambda: self.wall_s)
        monkeypatch.setattr(f"{module}.thread_time", lambda: self.cpu_s)

    def counts(self, cost_s: float) -> Iterator[int]:
        n = 0
        while True:
            self.cpu_s += cost_s
            yield n
            n += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_it_is_made_once_a_second(clock: Clock) -> None:
    counts = clock.counts(0.001)
    counted = Throttled(lambda: next(counts))
    assert counted.value() == 0
    clock.wall_s += 0.9 * EVERY_S
    assert counted.value() == 0
    clock.wall_s += 0.2 * EVERY_S
    assert counted.value() == 1


def test_what_takes_long_takes_no_more_than_its_share_of_a_core(clock: Clock) -> None:
    cost_s = 0.4
    counts = clock.counts(cost_s)
    counted = Throttled(lambda: next(counts))
    begun_s, cpu_s = clock.wall_s, clock.cpu_s
    while clock.wall_s < begun_s + 1000:
        counted.value()
        clock.wall_s += 0.2
    assert 0.8 * SHARE < (clock.cpu_s - cpu_s) / (clock.wall_s - begun_s) < 1.1 * SHARE


def test_what_has_expired_is_made_at_the_next_look(clock: Clock) -> None:
    counts = clock.counts(5.0)
    counted = Throttled(lambda: next(counts))
    counted.value()
    counted.expire()
    assert counted.value() == 1
    assert counted.value() == 1
