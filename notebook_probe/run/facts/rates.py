"""Learning rates and the state of optimizers, as updates use them."""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.run.facts.fact import FactFindings

__all__ = ["Rates", "is_large", "known_rate"]

LARGE = 2.0
"""Factor from which on a change is looked at before its update: the next steps may be of use."""

FALLS = "rate_falls_each_step"
FEWEST_FALLS = 20
"""Falls at each update that are enough; a warmup or a decay to 0 has other factors."""
WIDEST = 20
"""Updates between two falls of a schedule that has no other sign of counting updates."""


LAST = 1e-2
"""Share of the largest rate below which a fall is the end of a schedule."""
STAYS = 0.2
"""Share of all steps during which a rate has to be far below its largest."""
RANGE_TEST = "rate_range_test"
FEWEST_RISES = 20
"""Rises by the same factor that are enough; a linear warmup has another factor at each update."""


class _Changes:
    """Changes of a learning rate by the same factor, at the same distance.

    Attributes
    ----------
    n : int
        Number of them.
    factor, begun : float
        New rate as a part of the old one, and the rate before the first change.
    spacing : int
        Updates from one to the next.
    """

    def __init__(self) -> None:
        self.n, self.factor, self.begun, self.spacing = 0, 1.0, 0.0, 1
        self._step = 0

    def note(self, old: float, new: float, step: int) -> None:
        """Note a change of the rate."""
        factor = new / old if old > 0 else 1.0
        spacing, self._step = step - self._step, step
        is_same = abs(factor - self.factor) < 1e-6 and (self.n == 1 or spacing == self.spacing)
        if is_same and factor != 1:
            self.n, self.spacing = self.n + 1, spacing
        else:
            self.n, self.factor, self.begun = 1, factor, old

    def are_many_falls(self, most: float, times: float) -> bool:
        """Return whether a schedule for epochs must have been counted in updates."""
        if self.factor > 1:
            return False
        if self.spacing == 1:
            return self.n >= FEWEST_FALLS and self.factor <= most
        return self.n >= times and self.factor <= 0.5 and self.spacing <= WIDEST

    def are_a_range_test(self, times: float) -> bool:
        """Return whether rates are tried, each a little larger than the one before."""
        is_steady = self.spacing == 1 and self.n >= FEWEST_RISES
        return is_steady and self.factor > 1 and self.n * math.log(self.factor) >= math.log(times)


class Rates:
    """Facts about the options of optimizers.

    A scheduler may change a rate before each update. The training thread only notes it; what it
    means is found on the writer's thread.

    Parameters
    ----------
    findings : FactFindings
    resumed_at : int
        The step from which a record is continued; 0 for a new one.
    """

    def __init__(self, findings: FactFindings, resumed_at: int) -> None:
        self._findings, self._resumed_at = findings, resumed_at
        self._noted: deque[tuple[Optimizer, list[float], int]] = deque()
        self._last: weakref.WeakKeyDictionary[Optimizer, list[float]] = weakref.WeakKeyDictionary()
        self._changes: weakref.WeakKeyDictionary[Optimizer, _Changes] = weakref.WeakKeyDictionary()
        self._met: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._lock = threading.Lock()
        self.tried = range(0)
        """Steps of the last range test, as far as it is known."""
        self._rate = 0.0
        self._peaks: weakref.WeakKeyDictionary[Optimizer, float] = weakref.WeakKeyDictionary()
        self._gone_since: int | None = None

    def note(self, optimizer: Optimizer, rates: list[float], step: int) -> None:
        """Note the rates of an update that other rates have preceded."""
        self._noted.append((optimizer, rates, step))

    def gradients_ready(self, optimizer: Optimizer, step: int) -> None:
        """Look at the options before an update."""
        if optimizer not in self._met:
            self._met.add(optimizer)
            self._say_lost(optimizer, step)
        self.note(optimizer, [*map(known_rate, optimizer.param_groups)], step)
        self.judge(step)

    def judge(self, step: int) -> None:
        """Look at the rates that were noted; on any thread."""
        with self._lock:
            while self._noted:
                self._look_at(*self._noted.popleft())
            if self._gone_since is not None:
                self._say_gone(self._rate, step)

    def _look_at(self, optimizer: Optimizer, rates: list[float], step: int) -> None:
        before, self._last[optimizer] = self._last.get(optimizer), rates
        if rates == before:
            return
        if self._gone_since is not None:
            self._say_gone(self._rate, step - 1)
        if before is not None and len(rates) == len(before):
            changes = self._changes.setdefault(optimizer, _Changes())
            was_tried = step - 1 in self.tried
            if rates and not self._say_steady(changes, before[0], rates[0], step):
                self._say_jump(before, rates, step)
                if was_tried:  # what a range test has tried is not what the training began with
                    self._peaks[optimizer] = 0.0
        self._peaks[optimizer] = max(self._peaks.get(optimizer, 0.0), *rates, 0.0)
        # Of several optimizers the fastest: another one may be slow on purpose.
        self._rate = max((one for some in self._last.values() for one in some), default=0.0)
        self._say_gone(self._rate, step)

    @property
    def _peak(self) -> float:
        """Largest rate of the optimizers that are in use."""
        return max(self._peaks.values(), default=0.0)

    def _say_lost(self, optimizer: Optimizer, step: int) -> None:
        """Report an optimizer that begins without the state of the run that is continued."""
        is_first = bool(self._resumed_at) and step <= self._resumed_at
        if is_first and not optimizer.state and any(map(_keeps_state, optimizer.param_groups)):
            rate = known_rate(optimizer.param_groups[0])
            kind = type(optimizer).__name__
            self._findings.say(
                "optimizer_state_lost", step, words={"kind": kind, "rate": f"{rate:.3g}"}
            )

    def _say_jump(self, before: list[float], now: list[float], step: int) -> None:
        most = self._findings.threshold("rate_jump", "times")
        for old, new in zip(before, now, strict=True):
            is_end = new < old < LAST * self._peak  # of a decay to nothing
            if old > 0 and new > 0 and max(old / new, new / old) >= most and not is_end:
                does = "rose" if new > old else "fell"
                factor = max(old / new, new / old)
                words = {"does": does, "factor": f"{factor:.3g}", "old": f"{old:.3g}"}
                words["new"] = f"{new:.3g}"
                self._findings.forget("rate_jump")  # each jump is one
                self._findings.say("rate_jump", step, words=words)
                return

    def _say_steady(self, changes: _Changes, old: float, new: float, step: int) -> bool:
        """Report a rate that changes by one factor again and again; return whether it does."""
        changes.note(old, new, step)
        if changes.are_a_range_test(self._findings.threshold(RANGE_TEST, "times")):
            first = step - changes.n
            self.tried = range(first, step + 1)
            words = {"factor": f"{changes.factor:.3g}", "begun": f"{changes.begun:.2g}"}
            self._findings.say(RANGE_TEST, step, since=first, words=words | {"rate": f"{new:.2g}"})
            return True
        return self._say_falls(changes, new, step)

    def _say_falls(self, falls: _Changes, new: float, step: int) -> bool:
        """Report a rate that falls again and again in a few updates; return whether it does."""
        most, times = (self._findings.threshold(FALLS, one) for one in ("most", "times"))
        if not falls.are_many_falls(most, times):
            return False
        each = falls.spacing
        words = {"when": "at each update" if each == 1 else f"every {each} updates"}
        words |= {
            "factor": f"{falls.factor:.3g}",
            "rate": f"{new:.2g}",
            "peak": f"{falls.begun:.2g}",
        }
        words["n"] = str(falls.n * each)
        self._findings.say(FALLS, step, since=step - falls.n * each, words=words)
        return True

    def _say_gone(self, rate: float, step: int) -> None:
        """Report a rate that stays far below its largest while the training continues."""
        if rate >= self._findings.threshold("rate_gone", "share") * self._peak:
            self._gone_since = None
            return
        if self._gone_since is None:
            self._gone_since = step
        since, least = self._gone_since, self._findings.threshold("rate_gone", "least")
        # The first step at which it has stayed so for long, whenever it is looked at.
        first = max(since + least, since / (1 - STAYS))
        if step >= first:
            found = math.ceil(first)
            words = {"rate": f"{rate:.2g}", "peak": f"{self._peak:.2g}", "n": found - since}
            self._findings.say("rate_gone", found, since=since, words=words)


def is_large(before: Sequence[float], now: Sequence[float]) -> bool:
    """Return whether a rate has changed so much that it is looked at before its update."""
    pairs = zip(before, now, strict=False)  # a group may have been added
    return any(new > LARGE * old or old > LARGE * new for old, new in pairs)


def known_rate(group: Mapping[str, Any]) -> float:
    """Return the learning rate of a group; 0 for one on an accelerator, to wait for nothing."""
    rate = group.get("lr", 0.0)
    return float(rate) if not isinstance(rate, Tensor) or rate.is_cpu else 0.0


def _keeps_state(group: dict[str, Any]) -> bool:
    """Return whether its optimizer has a state after one update: all but SGD without momentum."""
    return "betas" in group or "alpha" in group or bool(group.get("momentum"))
