"""Training in a thread, with torch's thread-local modes carried over from the caller's."""

from __future__ import annotations

import atexit
import contextvars
import math
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

import torch

from notebook_probe.errors import TrainingStopped
from notebook_probe.run.failure import EndReason
from notebook_probe.run.reached_step import ReachedStep
from notebook_probe.uninterrupted import join

__all__ = ["Background"]

EXIT_S = 5.0
"""An exiting interpreter waits at most so long for the training to reach the end of its step."""


class Background:
    """A training function that runs in a thread; `wait` gives its result or raises its error.

    Parameters
    ----------
    function : callable
    on_end : callable
        Called in the thread when the function has ended, with its exception: Stop is no error.
    stop : callable
        Asks the function to end at its next step; called when the interpreter exits, too.
    reached : ReachedStep
        Receives the function's steps.
    on_error : callable
        Called in the thread with the function's exception, before the function ends.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        on_end: Callable[[BaseException | None], None],
        stop: Callable[[], object],
        reached: ReachedStep,
        on_error: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.error: BaseException | None = None
        self.stopped = False
        """Stop ended it."""
        self._result: Any = None
        self._stop, self._reached, self._on_error = stop, reached, on_error
        self._on_end = on_end
        self._is_over = self._is_stopping = False
        # In the caller's context: what it prints belongs to the cell that began it.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run,
            args=(self._train, function, _modes_of_this_thread()),  # dropped at its end
            name="notebook-probe-training",
            daemon=True,  # a kernel that shuts down does not wait for an epoch
        )

    def start(self) -> Self:
        """Start the function, once those that ask for it have this object."""
        # A thread that is in torch when the interpreter goes away takes the process down with it.
        atexit.register(self._stop_at_exit)
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end before its next batch, the first one too; from any thread."""
        if self.running:
            # Remembered, as there may be no run to ask between two of them.
            self._is_stopping = True
            self._stop()

    def goes_on(
        self,
        on_end: Callable[[BaseException | None], None],
        stop: Callable[[], object],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """Pass the recording to another run from now on; called in the thread."""
        self._on_end, self._stop, self._on_error = on_end, stop, on_error
        if self._is_stopping:  # while no thread could be asked
            stop()

    def wait(self, timeout_s: float | None = None, *, step: int | None = None) -> Any:
        """Wait for the end, or only until a step is reached; the function's result once it is over.

        Parameters
        ----------
        timeout_s : float, optional
        step : int, optional
            Number of completed updates, counted as in the record and ``loop_step``, over all runs.
            A training that ends before ends the waiting.

        Raises
        ------
        TimeoutError
            The training still runs after ``timeout_s``, and has not reached ``step``.
        RuntimeError
            The training would wait for itself.
        Exception
            Any exception of the function.

        Examples
        --------
        >>> training = loop.start(loader, epochs=2)  # doctest: +SKIP
        >>> training.wait(step=100)  # doctest: +SKIP
        """
        if self._thread is threading.current_thread():
            raise RuntimeError("wait() on the thread that trains: it would wait for itself")
        if step is None:
            join(self._thread, math.inf if timeout_s is None else timeout_s)
        elif not self._reached.wait_for(step, lambda: self._is_over, timeout_s):
            raise TimeoutError(
                f"training is at step {self._reached.step} after {timeout_s} s, not at {step}"
            )
        elif self._is_over:
            join(self._thread)
        else:
            return None
        if self._thread.is_alive():
            raise TimeoutError(f"training still runs after {timeout_s} s")
        if self.error is not None:
            raise self.error
        return self._result

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped" if self.stopped else "finished"
        said = state if self.error is None else EndReason.of(self.error).text
        return f"<Background training: {said}>"

    def _train(
        self,
        function: Callable[[], Any],
        carry_modes: Callable[[ExitStack], None],
    ) -> None:
        """Call the function, and keep its result, or its error for `wait`."""
        try:
            with ExitStack() as stack:
                carry_modes(stack)
                self._result = function()
        except TrainingStopped:
            self.stopped = True
        except BaseException as error:  # kept for the panel and for wait()
            self._on_error(error)
            # Raised by `wait`; the panel shows it right away.
            self.error = error
        finally:
            try:
                self._on_end(self.error)
            finally:
                # Before waking: those who wait for a step look at it.
                self._is_over = True
                self._reached.wake()
            atexit.unregister(self._stop_at_exit)

    def _stop_at_exit(self) -> None:
        self._stop()
        # With a limit: a step that hangs must not keep the interpreter from exiting.
        join(self._thread, EXIT_S)


def _modes_of_this_thread() -> Callable[[ExitStack], None]:
    """Return a function that sets this thread's torch modes; context variables lack them."""
    # These modes are thread-local in torch: a new thread starts with the defaults.
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    device = torch.get_default_device()
    casts = [
        (kind, torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda")
        if torch.is_autocast_enabled(kind)
    ]
    cuda = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    stream = torch.cuda.current_stream() if cuda is not None else None

    def carry(stack: ExitStack) -> None:
        stack.enter_context(torch.inference_mode(inference))
        stack.enter_context(torch.set_grad_enabled(grad))
        for kind, dtype in casts:
            stack.enter_context(torch.autocast(kind, dtype))
        if device.type != "cpu":
            stack.enter_context(device)
        if cuda is not None:
            stack.enter_context(torch.cuda.device(cuda))
            stack.enter_context(torch.cuda.stream(stream))

    return carry
