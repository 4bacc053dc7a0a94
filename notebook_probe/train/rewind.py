"""Going back to a step trained before, equal bit for bit, to continue from there."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from notebook_probe.checks import is_whole
from notebook_probe.errors import ReplayWarning, TrainingStopped
from notebook_probe.run.actions.source_actions import hand_over_panel
from notebook_probe.run.run import Run
from notebook_probe.run.settings.settings import Settings
from notebook_probe.train.checkpoints.contents import SavedTraining
from notebook_probe.train.checkpoints.retained import Kept
from notebook_probe.train.set_again import SetAgain

__all__ = ["RewoundTraining", "rewind"]

Replay: TypeAlias = Callable[[int, Callable[[int], None]], None]
"""Trains the steps up to one again; before each of them its second argument is called."""


class RewoundTraining(SavedTraining, Protocol):
    """A loop that can go back.

    `Loop`, which imports this module, is one.
    """

    kept: Kept
    recording: Any  # what records its steps; None records nothing

    def on_step(self, call: Any, name: str = "", priority: float = 0) -> Any: ...
    def watch(self, **options: Any) -> Run: ...


def rewind(
    loop: RewoundTraining, replay: Replay, step: int, options: Mapping[str, Any]
) -> Run | None:
    """Bring a loop back to a step; return the run that continues as a branch, if recorded.

    See `Loop.rewind`.
    """
    before = loop.run
    recorded = {} if before is None else _losses(before)
    if before is None and options:
        raise ValueError(f"rewind({', '.join(options)}): there is no record to continue")
    _check(loop, step, 1 + max(recorded, default=-1))
    again = _set_again(before)
    if before is not None:
        # The branch is written to the same record, which has one writer at a time.
        before.close()
    recording = loop.recording
    try:
        loop.recording = None
        _replay(loop, replay, step, recorded, again)
        return None if before is None else _branch(loop, before, step, options)
    finally:
        if loop.recording is None:  # interrupted before the branch: rewind can be called again
            loop.recording = recording


def _replay(
    loop: RewoundTraining, replay: Replay, step: int, recorded: Mapping[int, float], again: SetAgain
) -> None:
    again.knobs_at(loop.kept.load_before(step).step)
    compared = _Compared(recorded)
    hook = loop.on_step(compared, "rewind", -math.inf)
    try:
        replay(step, again)
    finally:
        hook.remove()
    again.warn()
    compared.warn()
    if loop.n_updates != step:
        raise TrainingStopped(f"rewind({step}) was stopped at step {loop.n_updates}")


def _branch(loop: RewoundTraining, before: Run, step: int, options: Mapping[str, Any]) -> Run:
    """Record what follows as a branch, with the knobs and the panel of the run before."""
    run = loop.watch(store=before.location, step=step, branch=True, **options)
    for knob in before.controls.settings.knobs.values():
        run.controls.settings.add(knob)
    run.controls.continue_branch(before.controls, before)
    hand_over_panel(before, run)
    return run


def _set_again(run: Run | None) -> SetAgain:
    if run is None:
        return SetAgain(Settings(list), ())
    return SetAgain(run.controls.settings.unnoted(), run.events)


def _check(loop: RewoundTraining, step: Any, n_recorded: int) -> None:
    most = max(loop.n_updates, n_recorded)  # after an interrupt the loop may be at less
    if not (is_whole(step) and 0 <= step <= most):
        raise ValueError(f"rewind({step!r}): a step from 0 to {most} is expected")
    loop.kept.before(step)


def _losses(run: Run) -> dict[int, float]:
    """Return the recorded loss of each step, on the shown branch."""
    if not run.closed:
        run.flush()
    if "loss" not in run.data:
        return {}
    series = run.series("", "loss")
    return dict(zip(series["step"].values.tolist(), series.values.tolist(), strict=True))


class _Compared:
    """Comparison of repeated steps with their recorded losses, as rounded in the record."""

    def __init__(self, recorded: Mapping[int, float]) -> None:
        self._recorded = recorded
        self._first: tuple[int, float, float] | None = None

    def __call__(self, loop: Any, metrics: Mapping[str, Any]) -> None:
        known = self._recorded.get(loop.loop_step, math.nan)
        if self._first is None and not math.isnan(known):
            now = float(np.float32(float(metrics["loss"])))
            if now != known:
                self._first = loop.loop_step, known, now

    def warn(self) -> None:
        if self._first is not None:
            step, known, now = self._first
            warnings.warn(
                f"from step {step} on the replay differs from the record: loss {known!r} there, "
                f"{now!r} now. Something that no checkpoint holds has its part in it: data that "
                f"changed, a number that was set otherwise than by run.set, kernels that are not "
                f"deterministic",
                ReplayWarning,
                stacklevel=4,
            )
