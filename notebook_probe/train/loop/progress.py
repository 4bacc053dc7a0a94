"""Progress bar of tqdm, where it is visible."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.train.loop.hooks import HookedLoop
from notebook_probe.train.metrics.averages import Value

__all__ = ["Progress", "is_wanted"]

EVERY_S = 0.1


def is_wanted(run: Run | None) -> bool:
    """Return whether a bar is visible: in a terminal, or in a notebook without a panel."""
    if run is not None and not run.closed and run.controls.is_shown:
        return False
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(ipython, "kernel") or sys.stderr.isatty()


class Progress:
    """Show a loop's progress, its epoch and its loss; a callback of the loop.

    Parameters
    ----------
    wanted : bool or None
        None to show it where a user sees it. Without tqdm there is none.
    """

    name = "progress"

    def __init__(self, wanted: bool | None = None) -> None:
        if wanted is not None and not isinstance(wanted, bool):
            raise ValueError(f"progress={wanted!r}; allowed: True, False, None")
        self._wanted = wanted
        self._bar: Any = None
        self._shown_s = 0.0

    def on_start(self, loop: HookedLoop, data: Any) -> None:
        """Begin a bar."""
        if not (is_wanted(loop.run) if self._wanted is None else self._wanted):
            return
        if _total(loop) == 0:  # back at a checkpoint there is nothing to train again
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._bar = tqdm(total=_total(loop), unit="step")

    def on_step(self, loop: HookedLoop, metrics: Mapping[str, Value]) -> None:
        """Show it, ten times a second at most."""
        if self._bar is None:
            return
        now = time.monotonic()
        # Showing the loss waits for the device, and must not do so at every step.
        if now - self._shown_s > EVERY_S:
            self._shown_s = now
            self._show(loop, loop.loop_step + 1)
            self._tell(metrics["loss"])

    def on_close(self, loop: HookedLoop) -> None:
        """Leave the bar in its final state."""
        if self._bar is not None:
            if loop.loop_step > loop.start_step:
                self._tell(loop.last_metrics["loss"])
            self._show(loop, loop.loop_step)
            self._bar.close()
            self._bar = None

    def _tell(self, loss: Value) -> None:
        self._bar.set_postfix_str(f"loss {float(loss):.4g}", refresh=False)

    def _show(self, loop: HookedLoop, step: int) -> None:
        self._bar.total = _total(loop)
        self._bar.set_description(f"epoch {loop.epoch}", refresh=False)
        self._bar.update(step - loop.start_step - self._bar.n)


def _total(loop: HookedLoop) -> int | None:
    return loop.end_step - loop.start_step if loop.end_step >= loop.start_step else None
