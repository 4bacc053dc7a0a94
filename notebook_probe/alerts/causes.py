"""Causes of alerts: one cause with its consequences, from the alerts alone.

An alert may be a consequence of another one if its rule names the other's (``consequence_of``), and

* it starts at most `NEAR` steps after the other was found: trouble shows soon in a training;
* the other may have started by then. For a series that is measured every hundred steps it is only
  known after which row it started (`Alert.began`), so what is found later may be the cause; and a
  rule without a flow, which is about the training on average, may be as many steps behind. One
  that certainly started `NEAR` steps later or more is excluded: it most likely started since.

Of several possible causes the nearest before it counts; only if there is none, one that was found
later. A fact of execution, such as a layer that no optimizer holds, may be the cause of all that
began after it, however much later, if there is no other: it lasts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from notebook_probe.alerts.alert import Alert, began_at

__all__ = ["NEAR", "Cause", "causes", "may_come_of"]

NEAR = 64
"""Maximum distance in steps of related alerts.

These are alerts of one rule, a cause and its consequence, and an average that lags behind what it
explains.
"""

LASTING = frozenset(
    {
        "activation_before_loss",
        "broadcast_loss",
        "layers_made_in_forward",
        "negated_loss",
        "no_log_before_nll",
        "no_updates",
        "only_norms_train",
        "optimizer_state_lost",
        "rate_gone",
        "rate_jump",
        "softmax_dimension",
        "unregistered_layers",
        "weights_shrink",
    }
)
"""Rules that may explain every alert after them."""

STAGES = ("forward", None, "backward")
"""Order within one step: the activations, the loss, the gradients."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Finding of a rule, and its consequences.

    Attributes
    ----------
    alert : Alert
        The first.
    later : tuple of Alert
        Further ones of the same rule, elsewhere or again, each within 64 steps of the one before.
    consequences : tuple of Cause
        Consequences, in the order in which they started; each with its own.
    """

    alert: Alert
    later: tuple[Alert, ...] = ()
    consequences: tuple[Cause, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of all its alerts, the one where it started first."""
        return tuple(
            dict.fromkeys(module for one in (self.alert, *self.later) for module in one.modules)
        )

    @property
    def where(self) -> str:
        """Place where it started and was seen, in words."""
        return began_at(self.modules, self.alert.flow)

    @property
    def below(self) -> tuple[Cause, ...]:
        """Consequences and all of theirs, in the order in which they started."""
        every = chain.from_iterable((one, *one.below) for one in self.consequences)
        return tuple(sorted(every, key=lambda one: _order(one.alert)))

    def __iter__(self) -> Iterator[Alert]:
        """Every alert, the first one first."""
        yield self.alert
        yield from self.later
        for one in self.consequences:
            yield from one

    def lines(self, depth: int = 0) -> Iterator[tuple[int, Cause]]:
        """Yield the cause and all below it, each with its depth."""
        yield depth, self
        for one in self.consequences:
            yield from one.lines(depth + 1)

    def __str__(self) -> str:
        one = self.alert
        return f"step {one.step}: {one.rule} {self.where}: {one.sentence}"


def causes(alerts: Iterable[Alert]) -> tuple[Cause, ...]:
    """Return the alerts without a cause, each with its consequences; every alert is in one.

    Examples
    --------
    >>> high = Alert("lr_high", 100, "the model: ...", ("(root)",))
    >>> dead = Alert("dead_units", 140, "fc1: ...", ("fc1",), consequence_of=("lr_high",))
    >>> [cause] = causes([dead, high])
    >>> cause.alert.rule, [one.alert.rule for one in cause.consequences]
    ('lr_high', ['dead_units'])
    """
    findings = _findings(alerts)
    above = _above(findings)
    below: defaultdict[int, list[int]] = defaultdict(list)
    for i in range(len(findings)):
        below[above.get(i, -1)].append(i)

    def made(i: int) -> Cause:
        first, *later = findings[i]
        return Cause(first, tuple(later), tuple(made(j) for j in below[i]))

    return tuple(made(i) for i in below[-1])


def may_come_of(alert: Alert, other: Alert) -> bool:
    """Return whether one alert belongs to another: as a consequence, or as the same finding."""
    if other.rule == alert.rule:
        return _began(alert)[0] - other.step <= NEAR
    return other.rule in alert.consequence_of and (_before(alert, other) or _by_then(alert, other))


def _findings(alerts: Iterable[Alert]) -> list[list[Alert]]:
    """Alerts of one rule that soon follow each other, in the order in which they began."""
    findings: list[list[Alert]] = []
    newest: dict[str, list[Alert]] = {}
    for alert in sorted(alerts, key=_order):
        known = newest.get(alert.rule)
        if known is not None and _began(alert)[0] - known[-1].step <= NEAR:
            known.append(alert)
        else:
            newest[alert.rule] = [alert]
            findings.append(newest[alert.rule])
    return findings


def _above(findings: Sequence[Sequence[Alert]]) -> dict[int, int]:
    """Return the cause of each finding; none is its own cause, directly or indirectly."""
    numbered = [(alert, i) for i, finding in enumerate(findings) for alert in finding]
    rules = {alert.rule for alert, _ in numbered}
    of_rule = {rule: _OfRule(one for one in numbered if one[0].rule == rule) for rule in rules}
    above: dict[int, int] = {}
    for explains in (_before, _by_then):
        for i, finding in enumerate(findings):
            if i not in above:
                found = _candidates(finding[0], of_rule, explains)
                cause = next((j for j in found if not _is_above(i, j, above)), None)
                if cause is not None:
                    above[i] = cause
    for i, finding in enumerate(findings):
        if i not in above and (lasting := _lasting(finding[0], of_rule)):
            above[i] = lasting[-1]
    return above


def _lasting(alert: Alert, of_rule: Mapping[str, _OfRule]) -> list[int]:
    """Return the findings before it that last, the newest one last."""
    if alert.rule in LASTING:
        return []
    every = (one for rule in LASTING & of_rule.keys() for one in of_rule[rule].every())
    before = sorted((_when(one), finding) for one, finding in every if _when(one) <= _when(alert))
    return [finding for _, finding in before]


def _candidates(
    alert: Alert, of_rule: Mapping[str, _OfRule], explains: Callable[[Alert, Alert], bool]
) -> list[int]:
    """Return possible causes among the findings: the nearest first, then as the rule names them."""
    found = []
    for rank, rule in enumerate(alert.consequence_of):
        if rule in of_rule:
            for other, finding in of_rule[rule].near(alert):
                if explains(alert, other):
                    apart = abs(_began(alert)[1] - _began(other)[1])
                    found.append((apart, rank, finding))
    return [finding for *_, finding in sorted(found)]


class _OfRule:
    """Alerts of one rule, with the number of their finding; those near another are soon found."""

    def __init__(self, alerts: Iterable[tuple[Alert, int]]) -> None:
        self._alerts = sorted(alerts, key=lambda one: _began(one[0])[0])
        self._began = [_began(alert)[0] for alert, _ in self._alerts]
        self._newest = [*accumulate((alert.step for alert, _ in self._alerts), max)]

    def every(self) -> list[tuple[Alert, int]]:
        """Return all of them."""
        return self._alerts

    def near(self, alert: Alert) -> Iterator[tuple[Alert, int]]:
        """All that may be its cause, and some that may not."""
        first, last = _began(alert)
        i = bisect_right(self._began, last + NEAR)
        while i and self._newest[i - 1] >= first - NEAR:
            i -= 1
            yield self._alerts[i]


def _before(alert: Alert, other: Alert) -> bool:
    """Return whether the other one had started before, not long ago."""
    return _when(other) <= _when(alert) and _soon(alert, other)


def _by_then(alert: Alert, other: Alert) -> bool:
    """Return whether the other one may have started before, though it was found later."""
    (first, last), then = _began(other), _began(alert)[1]
    is_known_soon = last <= then + NEAR
    return is_known_soon and (other.flow is None or first <= then) and _soon(alert, other)


def _soon(alert: Alert, other: Alert) -> bool:
    return _began(alert)[0] - other.step <= NEAR


def _is_above(i: int, j: int, above: Mapping[int, int]) -> bool:
    """Return whether ``j`` is ``i``, or a consequence of it."""
    while j != i and j in above:
        j = above[j]
    return j == i


def _began(alert: Alert) -> tuple[int, int]:
    return alert.began or (alert.step, alert.step)


def _when(alert: Alert) -> tuple[int, int]:
    """Return when it started; within a step, forward findings are before backward ones."""
    return _began(alert)[1], STAGES.index(alert.flow)


def _order(alert: Alert) -> tuple[tuple[int, int], int, str, str]:
    """Return a total order by start, so that simultaneous alerts are always in the same order."""
    return _when(alert), alert.step, alert.text, alert.detail
