"""Numbers that a record has gained since the last call, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import EVALUATION, LOGGED_BY
from notebook_probe.record.format.source import ROOT, StreamView, Variable
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.record.views.own_names import OwnNames
from notebook_probe.record.write.recorded_source import RecordedSource

__all__ = ["NewRows"]

WINDOW_VALUES = 2**18
"""Approximate number of values that are read at once."""


class NewRows:
    """Numbers of the newest branch, each row once.

    Parameters
    ----------
    source : RecordedSource
    first_step : int
        Existing rows of earlier steps are skipped.
    """

    def __init__(self, source: RecordedSource, first_step: int) -> None:
        self._source = source
        self._seen = {
            key: int(np.searchsorted(view.steps(), first_step))
            for key, view in self._views().items()
        }

    def take(self, whole: bool) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield steps in order, with the measured numbers by tag.

        Later steps may be smaller if rows were written out of order.

        Parameters
        ----------
        whole : bool
            Nothing more comes at the newest step; else it waits.
        """
        views = self._views()
        end = math.inf if whole else max(map(_newest, views.values()), default=-1)
        n_columns = sum(len(view.modules) * len(view.variables) for view in views.values())
        n_steps = max(1, WINDOW_VALUES // max(1, n_columns))
        while (first := self._next_step(views)) < end:
            yield from self._window(views, min(end, first + n_steps), n_steps)

    def _views(self) -> dict[tuple[bool, str], StreamView]:
        """Return streams by kind and name; columns of the first kind are names of scalars."""
        now = self._source.snapshot()
        streams, named = map(now.branches.history, (now.streams, now.named))
        every = [*((False, view) for view in streams), *((True, view) for view in named)]
        return {(is_named, view.name): view for is_named, view in every}

    def _next_step(self, views: dict[tuple[bool, str], StreamView]) -> float:
        """Return the least step of a row that was not taken; infinite if there is none."""
        seen = ((view, self._seen.get(key, 0)) for key, view in views.items())
        firsts = [view.steps(row, row + 1) for view, row in seen]
        return min((int(steps[0]) for steps in firsts if len(steps)), default=math.inf)

    def _window(
        self, views: dict[tuple[bool, str], StreamView], end: float, most_rows: int
    ) -> Iterator[tuple[int, dict[str, float]]]:
        """All rows of steps below ``end``."""
        steps: dict[int, dict[str, float]] = {}
        names = self._source.snapshot().own_names
        for key, view in views.items():
            first = self._seen.get(key, 0)
            n_rows = int(np.searchsorted(view.steps(first, first + most_rows), end))
            self._seen[key] = first + n_rows
            for step, values in _rows(view, key[0], first, first + n_rows, names):
                steps[step] = values | steps.get(step, {})  # of equal names the first stream's
        yield from sorted(steps.items())


def _rows(
    view: StreamView, is_named: bool, start: int, stop: int, names: OwnNames
) -> Iterator[tuple[int, dict[str, float]]]:
    if start == stop:
        return
    variables, modules = view.variables, view.modules
    tags = [_tag(view, one, module, is_named, names) for one in variables for module in modules]
    tables = [view.values(one.name, start, stop, modules) for one in variables]
    values = np.concatenate(tables, axis=1)
    known = measured(values)
    for step, row, of_row in zip(view.steps(start, stop).tolist(), values, known, strict=True):
        places: Sequence[int] = np.flatnonzero(of_row).tolist()
        numbers = row[places].tolist()
        yield step, {tags[place]: value for place, value in zip(places, numbers, strict=True)}


def _tag(view: StreamView, variable: Variable, module: str, is_named: bool, names: OwnNames) -> str:
    """``conv1/grad_norm``; of the whole model, and of what the loop logs, the name alone."""
    name = module if is_named else variable.name
    if variable.long_name == LOGGED_BY:
        name = names.get((view.name.startswith(EVALUATION), name), name)
    return name if is_named or module == ROOT else f"{module}/{name}"


def _newest(view: StreamView) -> int:
    """Return the last training step in a stream, which may get further rows.

    An evaluation belongs to the step after it, and is recorded before that.
    """
    in_order = read_name(view.name).rank == IN_ORDER
    n = view.n_rows if in_order and not view.name.startswith(EVALUATION) else 0
    return int(view.steps(n - 1, n)[0]) if n else -1
