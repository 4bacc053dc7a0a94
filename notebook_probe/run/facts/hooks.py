"""Hooks that pile up: more of them with each step."""

from __future__ import annotations

from notebook_probe.run.facts.context import FactContext

__all__ = ["PilingHooks"]

RULE = "hooks_pile_up"


class PilingHooks:
    """Fact about modules that have more hooks at each of several steps in a row.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules, self._findings = context.modules, context.findings
        self._counts: dict[str, int] = {}
        self._n_more: dict[str, int] = {}

    def look(self, step: int) -> None:
        """Count the hooks before a step."""
        enough = self._findings.threshold(RULE, "steps_in_a_row")
        # At each early step: no function is called for each module.
        counts = {
            path: len(one._forward_hooks) + len(one._forward_pre_hooks) + len(one._backward_hooks)
            for path, one in self._modules().items()
        }
        before, self._counts = self._counts, counts
        self._n_more = {
            path: self._n_more.get(path, 0) + 1
            for path, n in counts.items()
            if n > before.get(path, n)
        }
        found = [path for path, n_more in self._n_more.items() if n_more >= enough]
        if found:
            words = {"n": counts[found[0]]}
            since = step - int(enough)
            self._findings.say(RULE, step, found, since=since, words=words)
