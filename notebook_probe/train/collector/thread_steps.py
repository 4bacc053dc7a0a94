"""Steps that run on threads: one on each, which its helpers take part in."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from notebook_probe.train.collector.executor import Step

__all__ = ["ThreadSteps"]


class _Local(threading.local):
    step: Step | None = None
    is_helper = True


class ThreadSteps:
    """The step of each thread.

    Parameters
    ----------
    ended : callable
        ``ended(step)`` is called with each that is complete.
    """

    def __init__(self, ended: Callable[[Step], None]) -> None:
        self._ended = ended
        self._local = _Local()
        self._lock = threading.Lock()
        # A step that raised never ends: it leaves here when nothing else refers to it.
        self._steps: weakref.WeakSet[Step] = weakref.WeakSet()

    def begin(self, step: Step) -> None:
        """Start a step on this thread, possibly in place of one that failed."""
        with self._lock:
            self._local.step, self._local.is_helper = step, False
            self._steps.add(step)

    def forget(self) -> None:
        """Forget the step of this thread."""
        self._local.step, self._local.is_helper = None, False

    def end(self) -> None:
        """Complete the step of this thread."""
        step = self._local.step
        if step is not None and not step.has_ended:
            step.has_ended = True
            self._ended(step)

    def now(self, is_training: bool | None) -> Step | None:
        """Return the step of this thread; on a thread that runs none, the only one that runs.

        Such are the threads of a backward pass and those of `torch.nn.DataParallel`. A step that is
        complete lasts until the next begins, or the model is put into another mode: where no mode
        is known, no longer.
        """
        step = self._local.step
        if self._local.is_helper:
            with self._lock:
                running = [one for one in self._steps if not one.has_ended]
            return running[0] if len(running) == 1 else None
        if step is not None and step.has_ended:
            return step if is_training is not None and step.is_training == is_training else None
        return step
