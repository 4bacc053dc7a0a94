"""The refreshing thread: awake when asked, gone with its owner, gone when closed."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from notebook_probe.explorer import refresher as refresher_module
from notebook_probe.explorer.refresher import Refresher, pause_s


class Owner:
    """Counts; lets the test wait for a refresh."""

    def __init__(self) -> None:
        self.n = 0
        self.refreshed = threading.Condition()

    def refresh(self) -> None:
        with self.refreshed:
            self.n += 1
            self.refreshed.notify_all()

    def wait_for(self, n: int) -> bool:
        with self.refreshed:
            return self.refreshed.wait_for(lambda: self.n >= n, timeout=60)


def test_it_refreshes_until_it_is_closed() -> None:
    owner, ended = Owner(), threading.Event()
    refresher = Refresher(owner, ended.set)
    assert owner.wait_for(3)
    refresher.close()
    assert ended.is_set()
    n = owner.n
    refresher.wake()
    refresher.close()
    assert owner.n == n


def test_it_ends_with_an_owner_that_nobody_holds() -> None:
    owner, ended = Owner(), threading.Event()
    reference = weakref.ref(owner)
    refresher = Refresher(owner, ended.set)
    assert owner.wait_for(1)
    del owner
    gc.collect()
    assert ended.wait(60)
    assert reference() is None
    refresher.close()


def test_it_does_not_keep_a_program_from_ending() -> None:
    owner = Owner()
    refresher = Refresher(owner, lambda: None)
    [thread] = [one for one in threading.enumerate() if one.name == "notebook_probe panel"]
    assert thread.daemon
    refresher.close()
    assert not thread.is_alive()


def test_waking_it_refreshes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresher_module, "pause_s", lambda cost_s, cores, is_used: 3600.0)
    owner = Owner()
    refresher = Refresher(owner, lambda: None)
    assert owner.wait_for(1)
    refresher.wake()
    assert owner.wait_for(2)
    refresher.close()


class Clock:
    """A second for each refresh, which takes no time of the processor."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def monotonic(self) -> float:
        return float(self._owner.n)

    def thread_time(self) -> float:
        return 0.0


def test_after_a_click_refreshes_come_sooner_for_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = Owner()
    monkeypatch.setattr(refresher_module, "time", Clock(owner))
    were_used: list[bool] = []
    waits = threading.Event()

    def pause_s(cost_s: float, cores: int, is_used: bool) -> float:
        were_used.append(is_used)
        if not is_used:
            waits.set()
        return 0.0 if is_used else 3600.0

    monkeypatch.setattr(refresher_module, "pause_s", pause_s)
    refresher = Refresher(owner, lambda: None)
    for _ in range(2):
        assert waits.wait(60)
        waits.clear()
        refresher.wake()
    assert waits.wait(60)
    waits.clear()
    refresher.wake(is_used=False)
    assert waits.wait(60)
    refresher.close()
    assert were_used[:16] == [*3 * [True, True, True, True, False], False]


def test_expensive_refreshes_come_seldom() -> None:
    assert pause_s(cost_s=0.02, cores=16) == pytest.approx(1.0)
    assert pause_s(cost_s=30.0, cores=16) == 2.0, "still alive"
    assert pause_s(cost_s=0.0003, cores=16) == 0.125
    assert pause_s(cost_s=0.0003, cores=2) == 0.66
    assert pause_s(cost_s=0.0003, cores=2, is_used=False) == 1.5
