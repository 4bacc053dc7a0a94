"""Looking at the tensors of a module while it trains."""

from __future__ import annotations

import time

import xarray as xr

from notebook_probe.errors import NotLookedError, shown_as
from notebook_probe.record.views.looks import Look, looks_of
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.attach.requests import LookAt, Ticket
from notebook_probe.run.parts import RunParts

__all__ = ["LookActions", "PendingLook"]

PATIENCE_S = 60.0
TURN_S = 0.25
"""The training may end meanwhile."""


@shown_as("run")
class LookActions(LiveActions):
    """Methods that show tensors."""

    def look(self, module: str, *, samples: int = 8) -> PendingLook:
        """Store tensors of ``module`` in the next step: input, output, weight, gradients, update.

        The tensors are its input, output and the gradient of the output (of some samples), its
        weight, the weight's gradient and update, and for attention the weights of each query.
        Smallest, mean and largest value, deviation, zeros, NaN and infinities are stored for the
        whole tensors. The record stores them: `looks` lists them, also in an opened record. The
        cost is one copy of the stored parts in one step. 64 looks are kept; then the oldest is
        dropped, with an event.

        Parameters
        ----------
        module : str
            Path of one module.
        samples : int
            Maximum number of samples of tensors with a batch axis, 1 to 64; large tensors have
            fewer samples, or every n-th row.

        Returns
        -------
        PendingLook
            ``.data`` is an `xarray.Dataset` after the step; it waits for the step if another thread
            trains.

        Raises
        ------
        UnknownNameError, QuantityError, NotApplicableError
            No module or several modules match, or the number of samples is not allowed.
        ClosedRunError

        Examples
        --------
        >>> look = run.look("conv2")  # doctest: +SKIP
        >>> train_one_step()  # doctest: +SKIP
        >>> look.data.output.attrs["maximum"]  # doctest: +SKIP
        1.59
        """
        live, request = self._live, LookAt(module, samples)
        live.looks.check(request)
        return PendingLook(live, module, live.put_between_steps(request))


class PendingLook:
    """A requested look; its `data` are available after its step."""

    def __init__(self, live: RunParts, module: str, ticket: Ticket) -> None:
        self._live, self.module, self.ticket = live, module, ticket

    @property
    def step(self) -> int:
        """Step in which the look is taken; -1 until it has started."""
        return self.ticket.applied_step

    @property
    def data(self) -> xr.Dataset:
        """Dataset with a variable per tensor, and facts about the whole tensor as attributes.

        Raises
        ------
        NotLookedError
            The look was refused, its step is not complete, or the module was not called in it.
        """
        return self.kept.data

    @property
    def kept(self) -> Look:
        """The recorded look; raises as `data`."""
        self._wait()
        ticket, looks = self.ticket, self._live.looks
        if ticket.state == "refused":
            raise NotLookedError(ticket.text)
        key, source = (self.module, ticket.applied_step), self._live.source
        # Still in memory: shown at once, although its event follows at the next boundary.
        if key in looks.asked and self._live.observer.clock.has_stepped:
            facts, arrays = looks.seen(*key)
            if facts:
                return Look(*key, facts, arrays, lambda: source.blobs)
        if ticket.state == "queued" or key in looks.asked:
            raise NotLookedError(
                f"look({self.module!r}): the step in which it is taken is not over; train one step"
            )
        for one in looks_of(source.events, lambda: source.blobs):
            if (one.module, one.step) == key:
                return one
        raise NotLookedError(looks.missed.get(key, f"nothing was kept of {self.module}"))

    def _wait(self) -> None:
        """Wait while another thread trains; the training thread cannot wait for itself."""
        live, deadline = self._live, time.monotonic() + PATIENCE_S
        # Only another thread can finish the step; waiting on the training thread would never end.
        while live.gate.is_elsewhere or live.state.trains_in_background:
            if live.looks.wait(self.ticket, self.module, TURN_S) or time.monotonic() > deadline:
                return

    def __repr__(self) -> str:
        at = f" at step {self.step}" if self.step >= 0 else ""
        return f"<look at {self.module!r}{at}, {self.ticket.state}>"
