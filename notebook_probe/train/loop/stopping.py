"""Reasons to end a loop early: an alert, and Ctrl-C, after which the step is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from notebook_probe.alerts import Rule
from notebook_probe.alerts.listing import read_alerts
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.run.run import Run
from notebook_probe.train.metrics.averages import Value

__all__ = ["StopOn", "interrupts_wait"]


class _Stoppable(Protocol):
    @property
    def run(self) -> Run | None: ...
    def stop(self, reason: str = "") -> None: ...


class StopOn:
    """Stop a loop once a rule has found something; a callback of the loop.

    Parameters
    ----------
    run : Run
    rules : iterable of str or Rule
        A rule that the run does not follow yet is followed from now on.

    Raises
    ------
    UnknownNameError
        No rule of that name.
    """

    def __init__(self, run: Run, rules: Iterable[str | Rule]) -> None:
        self._run = run
        self._names = frozenset(_followed(run, rule) for rule in rules)
        self._n_seen = len(run.events)

    def on_step(self, loop: _Stoppable, metrics: Mapping[str, Value]) -> None:
        """Check the alerts found since the last step."""
        events = self._run.events
        if len(events) == self._n_seen:
            return
        new, self._n_seen = events[self._n_seen :], len(events)
        for alert in read_alerts(new):
            if alert.rule in self._names:
                loop.stop(str(alert))
                return


def _followed(run: Run, rule: str | Rule) -> str:
    if isinstance(rule, Rule):
        run.rules.setdefault(rule.name, rule)
        return rule.name
    if rule not in run.rules:
        raise UnknownNameError(f"no rule {rule!r}; {near(rule, run.rules)}")
    return rule


@contextmanager
def interrupts_wait(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` at the first interrupt inside; the second raises KeyboardInterrupt.

    Only on the main thread, and where nobody else handles interrupts.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        act()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
