"""Batches of unusual steps, kept as looks at the model: where a loss jumps, or training pauses.

No batch is copied at other steps. A loss that is on the host is compared with the highest usual one
as its backward begins, when the inputs still exist; rules judge the step about a second later, and
only what they report is recorded.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from torch import Tensor

from notebook_probe.alerts import Alert, Rule
from notebook_probe.alerts.dense_loss import meant
from notebook_probe.alerts.following import has
from notebook_probe.probes.loss.kept_calls import KeptCall, KeptCalls
from notebook_probe.record.format.loss_names import LOSS
from notebook_probe.record.format.source import ROOT, StreamView
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.looks.batch_tensors import batch_tensors
from notebook_probe.run.looks.looks import Looks
from notebook_probe.run.looks.sample_copies import SampleCopies

__all__ = ["KeptBatches"]

PREFIX = "batch"
SPIKE = "loss_spike"
"""Rule whose numbers say how far above the usual losses a jump is."""
MOST_WAITING = 4
"""Copies that wait for an alert; a later one replaces the oldest."""
MOST_BATCHES = 16
"""Batches of alerts that one training records; those of breakpoints are not limited."""
N_BACK = 2
"""Steps between a jump and an alert that is reported where it stays."""
RECENT, FEWEST = 100, 20
"""Losses that are usual, and how many are needed to judge."""
RISE = 0.2
"""Relative rise above a jump that is another one, until the recorded losses are known."""
SAME = 1e-3
"""Relative difference between the recorded loss and the one of `backward()`."""


class _Jump(NamedTuple):
    """A batch whose loss is not usual, until an alert reports it."""

    step: int
    loss: float
    copies: SampleCopies


class KeptBatches:
    """Batches of one run.

    Parameters
    ----------
    looks : Looks
    writer : RecordWriter
    calls : KeptCalls
    rules : mapping of str to Rule
        Rules that are followed.

    Attributes
    ----------
    highest : float
        Loss above which a batch is copied; infinite while no usual loss is known.
    """

    def __init__(
        self, looks: Looks, writer: RecordWriter, calls: KeptCalls, rules: Mapping[str, Rule]
    ) -> None:
        self._looks, self._writer, self._calls, self._rules = looks, writer, calls, rules
        self._waiting: deque[_Jump] = deque(maxlen=MOST_WAITING)
        self._is_off = False
        self._n_written = 0
        self.highest = math.inf

    # ---------------------------------------------------------------- on the training thread

    def copy(self, step: int, loss: Tensor, calls: Sequence[KeptCall]) -> None:
        """Copy samples of the batch of a loss before its backward, until an alert reports it."""
        if self._is_off or not calls:
            return
        try:
            copies = SampleCopies.of(step, batch_tensors(calls[-1], loss))
        except Exception:  # whatever a batch is, it is trained on
            self._turn_off()
            return
        value = loss.item()
        self._waiting.append(_Jump(step, value, copies))
        if math.isfinite(value):
            # Or a loss that rises at every step would be copied at every step.
            self.highest = max(self.highest, value + RISE * abs(value))

    def await_pause(self) -> None:
        """Keep the inputs of the next step's last call until the step after it begins."""
        self._calls.await_pause()

    def paused(self, step: int, why: str) -> None:
        """Record samples of the batch of ``step``, at which training pauses, if it still exists."""
        latest = self._calls.latest
        call = None if latest is None else latest.by_step.get(step)
        with suppress(Exception):  # a pause must not fail
            if call is not None and call.is_unchanged:
                copies = SampleCopies.of(step, batch_tensors(call))
                self._looks.keep_copies(copies, ROOT, PREFIX, why)
                self._writer.flush_soon()

    # ---------------------------------------------------------------- on the writer's thread

    def told(self, alert: Alert) -> None:
        """Record the batches of the steps that an alert is about."""
        first = alert.step - N_BACK if alert.began is None else min(alert.step, alert.began[1])
        for one in [*self._waiting]:
            if min(first, alert.step - N_BACK) <= one.step <= alert.step:
                with suppress(ValueError):  # another thread has taken it
                    self._waiting.remove(one)
                    self._write_of_alert(one, alert)

    def learn(self) -> None:
        """Find the highest usual loss, among those recorded last."""
        try:
            self._learn()
        except Exception:  # the record cannot be read: it is written all the same
            self._turn_off()

    def _learn(self) -> None:
        rule = self._rules.get(SPIKE)
        if self._is_off or rule is None or not self._calls.wanted:
            self.highest = math.inf
            return
        steps, losses = self._losses()
        if not all(_agrees(one, steps, losses) for one in [*self._waiting]):
            self._turn_off()  # rules judge another number than `backward()` is called on
            return
        known = losses[np.isfinite(losses)]
        if len(known) < FEWEST or known.min() < 0 < known.max():
            return
        highest, usual = float(known.max()), float(np.median(known))
        risen = highest + rule.thresholds["rise"] * abs(highest)
        self.highest = max(risen, usual + rule.thresholds["times"] * (highest - usual))

    def _turn_off(self) -> None:
        self._is_off, self.highest = True, math.inf
        self._waiting.clear()

    def _losses(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray]:
        """Return the last recorded losses and their steps."""
        views = [one for one in self._writer.source.streams.values() if _is_in_order(one)]
        name = meant((LOSS,), views)[0]
        view = next((one for one in views if has(one, name) and ROOT in one.modules), None)
        if view is None:
            return np.zeros(0, np.int64), np.zeros(0)
        first, last = max(0, view.n_rows - RECENT), view.n_rows
        return view.steps(first, last), view.values(name, first, last, [ROOT])[:, 0]

    def _write_of_alert(self, one: _Jump, alert: Alert) -> None:
        if self._n_written < MOST_BATCHES:
            self._n_written += 1
            self._looks.keep_copies(one.copies, ROOT, PREFIX, f"{alert.rule}: {alert.sentence}")


def _agrees(
    one: _Jump, steps: np.ndarray[tuple[int], np.dtype[np.int64]], losses: np.ndarray
) -> bool:
    """Return whether the recorded loss of a copied batch is that of its backward, if known."""
    recorded = losses[(steps == one.step) & np.isfinite(losses)]
    if not len(recorded) or not math.isfinite(one.loss):
        return True
    return abs(float(recorded[0]) - one.loss) <= SAME * abs(one.loss)


def _is_in_order(view: StreamView) -> bool:
    return read_name(view.name).rank == IN_ORDER
