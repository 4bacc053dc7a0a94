"""One cause with its consequences: what alerts tell of each other, from the alerts alone.

An alert may come of another one when its rule names the other's (``consequence_of``), and

* it begins at most `NEAR` steps after the other was found: a training that is ill shows it soon;
* the other may have begun by then. Of a series that is measured every hundred steps it is only
  known after which row it began (`Alert.began`), so that what is found later may be the cause; and
  a rule without a flow, which speaks of the training on average, may be as many steps behind. One
  that is known to hold only `NEAR` steps later and more is none: it most likely began since.

Of several that may be its cause it is the nearest before it; only where there is none, one that was
found later.
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
"""Steps that what belongs together is apart at most: alerts of one rule, a cause and what came of
it, and an average that is behind what it explains."""

STAGES = ("forward", None, "backward")
"""Within one step: the activations, the loss, the gradients."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a rule has found, and what came of it.

    Attributes
    ----------
    alert : Alert
        The first.
    later : tuple of Alert
        Further ones of the same rule, elsewhere or again, each within 64 steps of the one before.
    consequences : tuple of Cause
        What came of it, in the order in which it began; each with what came of that.
    """

    alert: Alert
    later: tuple[Alert, ...] = ()
    consequences: tuple[Cause, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Where it was found, the module at which it began first."""
        return tuple(
            dict.fromkeys(module for one in (self.alert, *self.later) for module in one.modules)
        )

    @property
    def where(self) -> str:
        """Where it began and was seen, in words."""
        return began_at(self.modules, self.alert.flow)

    @property
    def below(self) -> tuple[Cause, ...]:
        """Its consequences and all of theirs, in the order in which they began."""
        every = chain.from_iterable((one, *one.below) for one in self.consequences)
        return tuple(sorted(every, key=lambda one: _order(one.alert)))

    def __iter__(self) -> Iterator[Alert]:
        """Every alert, the first one first."""
        yield self.alert
        yield from self.later
        for one in self.consequences:
            yield from one

    def lines(self, depth: int = 0) -> Iterator[tuple[int, Cause]]:
        """It and all below it, each with its depth."""
        yield depth, self
        for one in self.consequences:
            yield from one.lines(depth + 1)

    def __str__(self) -> str:
        one = self.alert
        return f"step {one.step}: {one.rule} {self.where}: {one.sentence}"


def causes(alerts: Iterable[Alert]) -> tuple[Cause, ...]:
    """Each alert once: those that no other one explains, with their consequences.

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
    """Whether one alert belongs to another: it may be its consequence, or is its like."""
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
    """Of findings the one that each came of; none of itself, by whatever way."""
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
    return above


def _candidates(
    alert: Alert, of_rule: Mapping[str, _OfRule], explains: Callable[[Alert, Alert], bool]
) -> list[int]:
    """The findings that may be its cause, the nearest first, of these the one named first."""
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

    def near(self, alert: Alert) -> Iterator[tuple[Alert, int]]:
        """All that may be its cause, and some that may not."""
        first, last = _began(alert)
        i = bisect_right(self._began, last + NEAR)
        while i and self._newest[i - 1] >= first - NEAR:
            i -= 1
            yield self._alerts[i]


def _before(alert: Alert, other: Alert) -> bool:
    """The other one had begun before, not long ago."""
    return _when(other) <= _when(alert) and _soon(alert, other)


def _by_then(alert: Alert, other: Alert) -> bool:
    """The other one may have begun before, though it was found later."""
    (first, last), then = _began(other), _began(alert)[1]
    is_known_soon = last <= then + NEAR
    return is_known_soon and (other.flow is None or first <= then) and _soon(alert, other)


def _soon(alert: Alert, other: Alert) -> bool:
    return _began(alert)[0] - other.step <= NEAR


def _is_above(i: int, j: int, above: Mapping[int, int]) -> bool:
    """Whether ``j`` is ``i``, or has come of it."""
    while j != i and j in above:
        j = above[j]
    return j == i


def _began(alert: Alert) -> tuple[int, int]:
    return alert.began or (alert.step, alert.step)


def _when(alert: Alert) -> tuple[int, int]:
    """By when it began; of one step what travels forward first, and what travels back last."""
    return _began(alert)[1], STAGES.index(alert.flow)


def _order(alert: Alert) -> tuple[tuple[int, int], int, str, str]:
    """By when it began; of those that began together always the same first."""
    return _when(alert), alert.step, alert.text, alert.detail
