"""Sections that an interrupt waits for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from notebook_probe import uninterrupted as module
from notebook_probe.uninterrupted import InterruptibleCondition, join, uninterrupted, whole

pytestmark = pytest.mark.usefixtures("interruptible")


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_is_raised_once_the_section_is_over() -> None:
    done = []

    @whole
    def act() -> None:
        interrupt()
        done.append("all")

    with pytest.raises(KeyboardInterrupt):
        act()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_waits_for_the_outermost_section() -> None:
    done = []

    @whole
    def inner() -> None:
        interrupt()
        done.append("inner")

    @whole
    def outer() -> None:
        inner()
        done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert done == ["inner", "outer"]


def test_a_later_section_knows_nothing_of_it() -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted:
        interrupt()
    with uninterrupted:
        assert not uninterrupted.is_awaited


def test_a_second_interrupt_leaves_a_section_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", -1.0)
    done = []

    @whole
    def hang() -> None:
        interrupt()
        interrupt()
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        hang()
    assert not done


def test_an_error_in_it_is_the_context_of_the_interrupt() -> None:
    @whole
    def fail() -> None:
        interrupt()
        raise ValueError

    with pytest.raises(KeyboardInterrupt) as raised:
        fail()
    assert isinstance(raised.value.__context__, ValueError)


def test_a_handler_of_the_users_is_called_in_place_of_the_default() -> None:
    numbers: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: numbers.append(number))
    with uninterrupted:
        interrupt()
        assert not numbers
    assert numbers == [signal.SIGINT]


def test_on_another_thread_nothing_is_deferred() -> None:
    found: list[bool] = []

    def look() -> None:
        with uninterrupted:
            found.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [True]


def test_who_waits_for_a_condition_gives_up_at_an_interrupt_and_frees_its_lock() -> None:
    condition = InterruptibleCondition()
    timer = threading.Timer(0.01, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))

    def wait() -> None:
        with condition:
            timer.start()
            condition.wait_for(lambda: False)

    with pytest.raises(KeyboardInterrupt):
        wait()
    timer.join()
    assert condition.acquire(blocking=False)
    condition.release()


def test_an_interrupt_while_a_thread_is_waited_for_leaves_it_alive() -> None:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        # Comes in the middle of the wait, from the system as Ctrl-C does.
        _interrupted_after(0.02, lambda: join(thread))
    assert thread.is_alive(), "it still runs"
    join(thread, 0.01)
    assert thread.is_alive(), "and can be waited for again"
    ends.set()
    join(thread)
    assert not thread.is_alive()


def _interrupted_after(seconds: float, act: Callable[[], None]) -> None:
    before = signal.signal(signal.SIGALRM, lambda number, frame: interrupt())
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        act()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
