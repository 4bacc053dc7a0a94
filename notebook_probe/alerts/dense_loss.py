"""Choice of a rule's loss series: the logged one, or the tensor on which `backward()` was called.

A loop may log the mean of an epoch, once in hundreds of steps. A rule that waited for it would find
a divergence an epoch late, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from notebook_probe.alerts.following import has
from notebook_probe.record.format.loss_names import BACKWARD_LOSS, LOSS, NAMED_SERIES, logged_as
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import ROOT, StreamView

__all__ = ["meant"]

RECENT = 256
"""Steps of the training that are looked at."""
FEW = 2
"""Losses more or less are no matter: one of the two series is recorded before the other."""


def meant(quantities: tuple[str, ...], views: Iterable[StreamView]) -> tuple[str, ...]:
    """Return the series that a rule's quantities are, by their names in the record."""
    if NAMED_SERIES.keys().isdisjoint(quantities):
        return quantities
    of_steps = [view for view in views if not view.name.startswith(EVALUATION)]
    names = {variable.name for view in of_steps for variable in view.variables}
    return tuple(
        _denser(logged_as(name, names), names, of_steps) if name == LOSS else logged_as(name, names)
        for name in quantities
    )


def _denser(logged: str, names: set[str], views: Sequence[StreamView]) -> str:
    """Return the series with more losses of the last steps, the logged one of two alike."""
    if logged == BACKWARD_LOSS or logged_as(LOSS, names - {logged}) != BACKWARD_LOSS:
        return logged
    every = [view for view in views if has(view, BACKWARD_LOSS) and view.n_rows]
    if not every:
        return logged
    first = min(int(view.steps(max(0, view.n_rows - RECENT))[0]) for view in every)
    n_every, n_logged = (_n_losses(name, first, views) for name in (BACKWARD_LOSS, logged))
    return BACKWARD_LOSS if n_every - n_logged > max(FEW, n_every // 4) else logged


def _n_losses(name: str, first_step: int, views: Sequence[StreamView]) -> int:
    """Count the last values of a series from a step on."""
    n = 0
    for view in views:
        if has(view, name) and ROOT in view.modules:
            start = max(0, view.n_rows - RECENT)
            steps = view.steps(start)
            known = measured(view.values(name, start, start + len(steps), [ROOT])).any(axis=1)
            n += int(np.count_nonzero(known & (steps >= first_step)))
    return n
