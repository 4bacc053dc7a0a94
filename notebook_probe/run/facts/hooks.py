"""Hooks that pile up: more of them with each step."""

from __future__ import annotations

from torch import nn

from notebook_probe.run.facts.context import FactContext

__all__ = ["PilingHooks"]

RULE = "hooks_pile_up"
OWN = __name__.partition(".")[0] + "."


class PilingHooks:
    """Fact about modules that have more hooks at each of several steps in a row.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules, self._findings = context.modules, context.findings
        self._fewest: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._n_more: dict[str, int] = {}

    def look(self, step: int) -> None:
        """Count the hooks before a step."""
        enough = self._findings.threshold(RULE, "steps_in_a_row")
        modules = self._modules()
        # At each early step: no function is called for each module.
        counts = {
            path: len(one._forward_hooks) + len(one._forward_pre_hooks) + len(one._backward_hooks)
            for path, one in modules.items()
        }
        fewest = self._fewest
        grown = [path for path, n in counts.items() if n > fewest.setdefault(path, n)]
        # Those of the package come and go with the steps that are measured.
        before, self._counts = self._counts, {path: _foreign(modules[path]) for path in grown}
        self._n_more = {
            path: self._n_more.get(path, 0) + 1
            for path, n in self._counts.items()
            if n > before.get(path, 0)
        }
        found = [path for path, n_more in self._n_more.items() if n_more >= enough]
        if found:
            words = {"n": self._counts[found[0]]}
            since = step - int(enough)
            self._findings.say(RULE, step, found, since=since, words=words)


def _foreign(module: nn.Module) -> int:
    """Return how many hooks of others a module has."""
    of_module = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks
    hooks = [hook for found in of_module for hook in found.values()]
    return sum(not getattr(hook, "__module__", "").startswith(OWN) for hook in hooks)
