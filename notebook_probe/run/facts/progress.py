"""Facts about progress: updates that come, and a loss that leaves chance."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from notebook_probe.alerts.dense_loss import meant
from notebook_probe.alerts.following import has
from notebook_probe.alerts.rolling import Doubles
from notebook_probe.alerts.rule import Severity
from notebook_probe.record.format.loss_names import LOSS
from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import ROOT, Source, Steps
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.class_targets import N_BATCHES
from notebook_probe.run.facts.losses.loss_graph import LossGraph

__all__ = ["FactsOfProgress"]

RULE = "loss_at_chance"
NEAR = 0.02
"""Part of the loss of guessing by which a loss is below it at most, or five times that above."""
N_PARTS, MANY_FORWARDS = 6, 4
"""Parts of the rows whose shortest steps are compared, and forwards of a step that are many."""
N_FIRST = 10
"""First losses with which later ones are compared."""
EVERY = 50
"""Steps between two looks at the loss."""


class FactsOfProgress:
    """Facts that the writer's thread finds from counts and recorded losses.

    Parameters
    ----------
    context : FactContext
    source : Source
        Recorded rows.
    graph : LossGraph
        Knows how many classes the loss compares.
    """

    def __init__(self, context: FactContext, source: Source, graph: LossGraph) -> None:
        self._observer, self._findings = context.observer, context.findings
        self._source, self._graph = source, graph
        self._looked_at, self._is_last = 0, False
        self._modules = context.modules
        self._written = self._n_writes()

    def look(self) -> None:
        """Look at what has come since; on the writer's thread."""
        self._look_for_updates()
        step = self._observer.clock.step
        if step - self._looked_at >= EVERY or self._is_last:
            self._looked_at = step
            self._look_at_times()
            self._look_for_a_floor()
            if self._graph.n_classes:
                self._look_at_loss()

    def prepare_last_look(self) -> None:
        """Make each look from now on see all rows, however few came since the one before."""
        self._is_last = True

    def _look_for_updates(self) -> None:
        observer = self._observer
        n, step = observer.steps.n_forwards, observer.clock.step
        if observer.clock.has_stepped:
            return
        if not observer.steps.most_forwards:
            self._look_for_writes(n, step)
            return
        least = self._findings.threshold("no_updates", "least")
        if n >= max(least, 20 * observer.steps.most_forwards):
            self._findings.say("no_updates", step, words={"n": n, "last": step - 1})

    def _look_for_writes(self, n: int, step: int) -> None:
        """Look for updates without a step: torch counts the writes to each parameter."""
        rule = "unseen_updates"
        least, writes = (self._findings.threshold(rule, one) for one in ("least", "writes"))
        if n < least or self._observer.updates.n_elsewhere:
            return
        now = self._n_writes()
        found = max((now[name] - self._written.get(name, 0) for name in now), default=0)
        if found >= writes:
            self._findings.say(rule, step, words={"n": n, "writes": found})

    def _n_writes(self) -> dict[str, int]:
        """Return the number of writes to each parameter that requires a gradient."""
        return {
            f"{path}.{name}": one._version
            for path, module in self._modules().items()
            for name, one in module._parameters.items()
            if one is not None and one.requires_grad
        }

    def _look_at_times(self) -> None:
        """Compare the shortest steps of six parts of the last rows: a busy machine has a few."""
        n_rows = self._findings.threshold("steps_get_slower", "n_rows")
        # Episodes of agents become longer, and with them the steps, of many forwards each.
        if not self._observer.steps.most_forwards <= MANY_FORWARDS or not math.isfinite(n_rows):
            return
        each, times = (
            self._findings.threshold("steps_get_slower", one) for one in ("each", "times")
        )
        for seconds, at in self._series("step_time"):
            if len(seconds) < n_rows:
                continue
            part = int(n_rows) // N_PARTS
            least = seconds[-N_PARTS * part :].reshape(N_PARTS, part).min(axis=1)
            if (least[1:] > each * least[:-1]).all() and least[-1] > times * least[0]:
                words = {"now": f"{least[-1]:.2g}", "factor": f"{least[-1] / least[0]:.2g}"}
                since = int(at[-N_PARTS * part])
                self._findings.say("steps_get_slower", int(at[-1]), since=since, words=words)

    def _look_for_a_floor(self) -> None:
        """Look for a loss below 0 that falls faster and faster: a likelihood slows down."""
        least, times, faster = (
            self._findings.threshold("runaway_loss", one) for one in ("rows", "times", "faster")
        )
        for losses, at in self._series(LOSS):
            if len(losses) < least:
                continue
            first = max(1.0, float(np.abs(losses[:N_FIRST]).max()))
            means = [part.mean() for part in np.array_split(losses[len(losses) // 3 :], 4)]
            falls = -np.diff(means)
            is_faster = falls[0] > 0 and (falls[1:] > faster * falls[:-1]).all()
            if losses[-1] < -times * first and is_faster:
                words = {"first": f"{losses[0]:.3g}", "now": f"{losses[-1]:.3g}"}
                self._findings.say("runaway_loss", int(at[-1]), since=int(at[0]), words=words)

    def _look_at_loss(self) -> None:
        """Compare the last losses with that of guessing, and with none."""
        for losses, at in self._series(LOSS):
            self._compare(losses, at)
            self._look_at_targets(losses, at)

    def _series(self, name: str) -> Iterator[tuple[Doubles, Steps]]:
        """Yield the measured values of the model in each stream of the training."""
        views = [one for one in self._source.streams.values() if _is_of_training(one.name)]
        (name,) = meant((name,), views)
        for view in views:
            if has(view, name) and ROOT in view.modules:
                values = view.values(name, 0, view.n_rows, [ROOT])[:, 0].astype(np.float64)
                known = np.isfinite(values)
                yield values[known], view.steps(0, view.n_rows)[known]

    def _look_at_targets(self, losses: Doubles, at: Steps) -> None:
        """Report targets of one class in each batch, and in all once the loss has learned it.

        Contrast has such, too.
        """
        if self._graph.targets.are_sorted:
            self._findings.say("sorted_batches", int(at[-1]), words={"n": N_BATCHES})
        share = self._findings.threshold("constant_targets", "share")
        value, last = self._graph.targets.only_class, losses[-N_FIRST:]
        if value is None or len(last) < N_FIRST:
            return
        if last.max() < share * math.log(self._graph.n_classes):
            words = {"n": N_BATCHES, "value": value, "loss": f"{last.mean():.2g}"}
            # A perturbation may be learned to bring about one answer.
            severity: Severity | None = "remark" if self._graph.learns_its_input() else None
            self._findings.say("constant_targets", int(at[-1]), severity=severity, words=words)

    def _compare(self, losses: Doubles, at: Steps) -> None:
        rows, span = (self._findings.threshold(RULE, one) for one in ("rows", "span"))
        if len(losses) < rows or at[-1] - at[0] < span:
            return
        n, guess = int(rows) // 2, math.log(self._graph.n_classes)
        last, first = losses[-n:], int(at[-n])
        is_sure = last.std() / math.sqrt(n) < NEAR * guess / 2
        if is_sure and (1 - NEAR) * guess < last.mean() < (1 + 5 * NEAR) * guess:
            words = {"loss": f"{last.mean():.3g}", "guess": f"{guess:.3g}", "first": first}
            words |= {"n_classes": self._graph.n_classes}
            # A contrast with many negatives stays at chance for long before it learns.
            severity: Severity | None = "remark" if self._graph.is_of_list else None
            self._findings.say(RULE, int(at[-1]), since=first, severity=severity, words=words)


def _is_of_training(name: str) -> bool:
    return read_name(name).rank == IN_ORDER and not name.startswith(EVALUATION)
