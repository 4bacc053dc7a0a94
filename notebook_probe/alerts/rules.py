"""The rules that one run follows: every registered one, edited, added to, or taken away."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from html import escape
from types import MappingProxyType
from typing import TypeAlias

from notebook_probe.alerts.rule import RULES, Rule
from notebook_probe.errors import RuleError
from notebook_probe.tabular import html_table

__all__ = ["Rules"]

Changed: TypeAlias = Callable[[str, Rule | None, Rule | None], None]


class Rules(MutableMapping[str, Rule]):
    """Rules by name; may be changed from any thread during a run.

    Parameters
    ----------
    states : callable, optional
        Returns the state of each rule, in words; shown next to it.
    changed : callable, optional
        ``changed(name, before, after)`` is called with each change; None for a missing rule.

    Examples
    --------
    >>> rules = Rules()
    >>> rules["dead_units"] = rules["dead_units"].but(most=0.3)
    >>> del rules["loss_spike"]
    >>> "loss_spike" in rules, rules["dead_units"].thresholds["most"]
    (False, 0.3)
    """

    def __init__(
        self,
        states: Callable[[], Mapping[str, str]] = lambda: MappingProxyType({}),
        changed: Changed = lambda name, before, after: None,
    ) -> None:
        RULES.load()
        self._states, self._tell = states, changed
        self._changed: dict[str, Rule | None] = {}

    def edit(self, name: str, **numbers: float | None) -> None:
        """Give a rule other numbers, as `Rule.but`."""
        self[name] = self[name].but(**numbers)

    def add(self, rule: Rule) -> None:
        """Follow a rule under its own name."""
        self[rule.name] = rule

    def __getitem__(self, name: str) -> Rule:
        changed = self._changed.get(name)
        if name in self._changed and changed is None:
            raise KeyError(f"rule {name!r} was taken away")
        return RULES[name] if changed is None else changed

    def __setitem__(self, name: str, rule: Rule) -> None:
        if not isinstance(rule, Rule):
            raise RuleError(f"rules[{name!r}] = {rule!r}; a Rule is expected, as @rule makes it")
        before = self.get(name)
        self._changed = {**self._changed, name: rule}
        self._tell(name, before, rule)

    def show_states(self, states: Callable[[], Mapping[str, str]]) -> None:
        """Show these states from now on, with each rule."""
        self._states = states

    def states(self) -> Mapping[str, str]:
        """Return the state of each rule: ``"on"``, ``"waits for ..."`` or ``"off: ..."``."""
        return self._states()

    def __delitem__(self, name: str) -> None:
        before = self[name]
        self._changed = {**self._changed, name: None}
        self._tell(name, before, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def items(self) -> ItemsView[str, Rule]:
        """Return the present names and rules; a panel asks at each refresh."""
        return self._now().items()

    def values(self) -> ValuesView[Rule]:
        """Return the present rules."""
        return self._now().values()

    def _now(self) -> dict[str, Rule]:
        # At once: one look-up per rule would be half of the calls of a panel's refresh.
        every = {**dict(RULES.items()), **self._changed}
        return {name: rule for name, rule in every.items() if rule is not None}

    def __repr__(self) -> str:
        states = self.states()
        return "\n".join(f"{self[name]!r}  {states.get(name, '')}".rstrip() for name in self)

    def _repr_html_(self) -> str:
        states = self.states()
        rows = ([escape(repr(self[name])[6:-1]), escape(states.get(name, ""))] for name in self)
        return html_table({"rule": "", "now": "14em"}, rows)
