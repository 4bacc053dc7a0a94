"""Back to a step that was trained before, equal bit for bit, to go on from there."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from notebook_probe.errors import ReplayWarning, TrainingStopped
from notebook_probe.run.run import Run
from notebook_probe.run.settings.settings import Settings
from notebook_probe.train.checkpoints.contents import Training
from notebook_probe.train.checkpoints.kept import Kept
from notebook_probe.train.set_again import SetAgain

__all__ = ["Replayed", "rewind"]


class Replayed(Training, Protocol):
    """A loop that can train steps again."""

    kept: Kept

    def detach(self) -> None: ...
    def replay(self, data: Any, step: int, at_boundary: Callable[[int], None]) -> None: ...
    def on_step(self, call: Any, name: str = "", priority: float = 0) -> Any: ...
    def watch(self, **options: Any) -> Run: ...


def rewind(loop: Replayed, data: Any, step: int, options: Mapping[str, Any]) -> Run | None:
    """Bring a loop back to a step; the run that goes on there as a branch, if there was a record.

    See `Loop.rewind`.
    """
    before = loop.run
    recorded = {} if before is None else _losses(before)
    if before is None and options:
        raise ValueError(f"rewind({', '.join(options)}): nothing has been recorded to go on with")
    _check(loop, step)
    again = _set_again(before)
    if before is not None:
        before.close()
    loop.detach()
    again.knobs_at(loop.kept.load_before(step).step)
    compared = _Compared(recorded)
    hook = loop.on_step(compared, "rewind", -math.inf)
    try:
        loop.replay(data, step, again)
    finally:
        hook.remove()
    again.warn()
    compared.warn()
    if loop.n_updates != step:
        raise TrainingStopped(f"rewind({step}) was stopped at step {loop.n_updates}")
    if before is None:
        return None
    run = loop.watch(store=before.location, resume=f"branch({step})", **options)
    for knob in before.settings.knobs.values():
        run.settings.add(knob)
    run.goes_on(before)
    run.take_panel(before)
    return run


def _set_again(run: Run | None) -> SetAgain:
    if run is None:
        return SetAgain(Settings(list), ())
    return SetAgain(run.settings.unnoted(), run.events)


def _check(loop: Replayed, step: Any) -> None:
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= loop.n_updates:
        raise ValueError(f"rewind({step!r}): a step from 0 to {loop.n_updates} is expected")
    loop.kept.before(step)


def _losses(run: Run) -> dict[int, float]:
    """What was recorded of each step, on the branch that is shown."""
    if not run.closed:
        run.flush()
    if "loss" not in run.data:
        return {}
    series = run.series("", "loss")
    return dict(zip(series["step"].values.tolist(), series.values.tolist(), strict=True))


class _Compared:
    """Compares what is trained again with what was recorded, as the record keeps it."""

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
