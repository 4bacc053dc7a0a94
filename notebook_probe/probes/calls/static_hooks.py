"""Hooks that stay in place on compiled models, as compiled code is guarded by their number.

A hook that comes or goes has the code compiled again. So they stay once the model may be compiled,
and come and go in any other model, whatever else is compiled in the process.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from notebook_probe.probes.step.compiled import is_compiled, n_compiled

__all__ = ["StaticHooks"]


class StaticHooks:
    """Suspicion of compiled models: each time that anything is compiled, until hooks run again.

    A compiled function around the model leaves no trace in it. But hooks run only in calls that are
    not compiled.
    """

    def __init__(self) -> None:
        self._n_compiled = n_compiled()
        self._suspected_at: int | None = None

    def may_be_compiled(self, model: nn.Module | None, last_seen: Callable[[], int]) -> bool:
        """Return whether a model may run compiled.

        Parameters
        ----------
        model : nn.Module or None
        last_seen : callable
            Returns the step of the last call in which hooks ran.
        """
        n = n_compiled()
        if n != self._n_compiled:
            self._n_compiled, self._suspected_at = n, last_seen()
        if self._suspected_at is None:
            return False
        if last_seen() > self._suspected_at and not (model is not None and is_compiled(model)):
            self._suspected_at = None
        return self._suspected_at is not None
