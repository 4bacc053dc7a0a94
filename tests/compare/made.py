"""Runs in memory, of which every value is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.xarray_views import Snapshot
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

Values = Mapping[str, npt.ArrayLike]


class Clocked(FakeStream):
    """Rows at wall times of their own."""

    times_ms: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def times(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.int64]:
        return self.times_ms[start:stop]


class Made(FakeSource):
    """A run of its own name, with attributes of the root."""

    def __init__(self, name: str, streams: Sequence[FakeStream], modules: Sequence[str]) -> None:
        super().__init__(*streams, modules=modules)
        self.name = name
        self.attrs: dict[str, Any] = {}

    @property
    def is_written(self) -> bool:
        return not self.finished

    def snapshot(self) -> Snapshot:
        names = [row.name for row in self.modules]
        return Snapshot(self.given, self.given_vectors, names, self.attrs, Branches())


def made(
    name: str,
    norms: Values | None = None,
    *,
    steps: Sequence[int] | None = None,
    logged: Values | None = None,
    logged_steps: Sequence[int] | None = None,
    seconds: npt.ArrayLike | None = None,
    config: Mapping[str, Any] | None = None,
    epochs: Mapping[int, int] | None = None,
) -> Made:
    """A run of ``norm`` at some modules and of logged scalars, at steps from 0 by default."""
    streams: list[FakeStream] = []
    for values, at, is_logged in ((norms or {}, steps, False), (logged or {}, logged_steps, True)):
        if values:
            table = np.stack([as_measured(one) for one in values.values()], axis=1)
            known = range(len(table)) if at is None else at
            if is_logged:
                stream = Clocked("logged", ["(root)"], list(values), logged=True)
                stream.append(known, **{key: table[:, [i]] for i, key in enumerate(values)})
            else:
                stream = Clocked("every_1", list(values), ["norm"])
                stream.append(known, norm=table)
            at_s = np.arange(len(table)) if seconds is None else np.asarray(seconds)
            stream.times_ms = START_MS + np.rint(1000 * at_s).astype(np.int64)
            streams.append(stream)
    run = Made(name, streams, list(norms or {}))
    if config is not None:
        run.attrs["config"] = json.dumps(dict(config))
    run.events = tuple(
        Event(step, START_MS, "epoch", "", json.dumps({"epoch": epoch}))
        for step, epoch in (epochs or {}).items()
    )
    return run
