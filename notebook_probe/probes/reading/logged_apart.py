"""Values that a loop logs while their step is not open: for the next step, or of a state."""

from __future__ import annotations

from collections.abc import Set

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["LoggedApart"]


class LoggedApart:
    """Frames with what was logged while their step was not open.

    Opening the step for it would ask its schedules, and pass its gate, too early.

    Attributes
    ----------
    early : dict of int to StepFrame
        Values for a step that opens later; they join it when it closes.
    state : StepFrame or None
        Values of the state between two updates, until the next update.
    last_state : int
        Step of the last state of which something was kept; -1 before any.
    """

    def __init__(self) -> None:
        self.early: dict[int, StepFrame] = {}
        self.state: StepFrame | None = None
        self.last_state = -1

    def before(self, step: int) -> StepFrame:
        """Return the frame for values that are logged before ``step`` is open."""
        return self.early.setdefault(step, StepFrame(step))

    def coming(self, step: int) -> StepFrame | None:
        """Return the values that were logged for a step before it was open."""
        return self.early.get(step)

    def names(self, step: int, among: Set[str]) -> Set[str]:
        """Return those of some names that were logged for ``step`` before it was open."""
        early = self.coming(step)
        return early.logged(among) if early else set()

    def arrays(self, step: int) -> Set[tuple[str, str]]:
        """Return the places and names of arrays that were logged before ``step`` was open."""
        early = self.coming(step)
        return early.arrays.keys() if early else set()

    def joined(self, frame: StepFrame) -> StepFrame:
        """Return a closed step with what was logged before it was open."""
        early = self.early.pop(frame.step, None)
        return frame if early is None else frame.with_early(early)

    def begin_state(self, step: int) -> StepFrame:
        """Begin to log of the state after ``step`` updates."""
        self.state = StepFrame(step)
        self.state.of_state = True
        return self.state

    def end_state(self) -> StepFrame | None:
        """Return what was logged of the state, to be kept; nothing is added to it from now on."""
        state, self.state = self.state, None
        if state is not None:
            self.last_state = state.step
        return state

    def unfinished(self, frame: StepFrame | None) -> StepFrame | None:
        """Return the logged values of a step that was not trained."""
        if frame is None:
            return next(iter(self.early.values()), None)
        logged = StepFrame(frame.step)
        logged.time_ms = frame.time_ms
        logged.scalars.update(frame.scalars)
        logged.arrays.update(frame.arrays)
        logged.on_device = frame.on_device
        logged.recorded_beside = frame.recorded_beside
        return logged

    def provisional(self, frame: StepFrame | None, has_stepped: bool) -> StepFrame | None:
        """Return the part of the open step that counts: all of it after its update."""
        if frame is None or not has_stepped:
            return self.unfinished(frame)
        early = self.early.get(frame.step)
        return frame if early is None else frame.with_early(early)
