"""Reasons to end a loop early: a loss that is not finite, an alert, and Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from notebook_probe.alerts import Rule
from notebook_probe.alerts.listing import read_alerts
from notebook_probe.errors import InfLossError, NanLossError, UnknownNameError, near
from notebook_probe.run.run import Run
from notebook_probe.train.loop.hooks import HookedLoop
from notebook_probe.train.metrics.averages import Value

__all__ = ["CheckFinite", "FiniteCheck", "StopOn", "interrupts_wait"]

CheckFinite: TypeAlias = Literal["now"] | bool


class FiniteCheck:
    """Raise if a loss is NaN or infinite.

    Parameters
    ----------
    when : True, "now" or False
        True checks a loss on an accelerator once its copy has arrived, at most one step later;
        ``"now"`` waits for the copy.
    """

    def __init__(self, when: CheckFinite) -> None:
        if when not in (True, False, "now"):
            raise ValueError(f"check_finite={when!r}; allowed: True, 'now', False")
        self._when = when
        self._coming: tuple[int, Callable[[], float]] | None = None

    def __call__(self, step: int, loss: Value) -> None:
        """Check the loss of a step, or of the previous one."""
        if self._when is False:
            return
        if not isinstance(loss, Tensor):
            if not math.isfinite(loss):
                _refuse(step, loss)
        elif self._when == "now" or loss.device.type != "cuda":
            # Copies that do not wait need pinned memory and events, which are CUDA's.
            self._look(step, loss.item())
        else:
            # The copy of the step before has arrived meanwhile, so this hardly waits.
            self.finish()
            self._coming = step, _copied(loss)

    def finish(self) -> None:
        """Check the loss that is still on its way."""
        if self._coming is not None:
            (step, number), self._coming = self._coming, None
            self._look(step, number())

    def _look(self, step: int, loss: float) -> None:
        if not math.isfinite(loss):
            _refuse(step, loss)


def _refuse(step: int, loss: float) -> None:
    error = NanLossError if math.isnan(loss) else InfLossError
    raise error(
        f"the loss of step {step} is {loss}; allowed: finite numbers, or check_finite=False"
    )


def _copied(loss: Tensor) -> Callable[[], float]:
    """Return a function that returns the number once its copy has arrived."""
    # Only a copy into pinned memory leaves the host free.
    host = torch.empty((), dtype=loss.dtype, pin_memory=True)
    host.copy_(loss, non_blocking=True)
    event = torch.cuda.Event()
    event.record()

    def number() -> float:
        event.synchronize()
        return host.item()

    return number


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

    def on_step(self, loop: HookedLoop, metrics: Mapping[str, Value]) -> None:
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

    Only on the main thread, and where no other code handles interrupts.
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
