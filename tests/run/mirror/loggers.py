"""Loggers with the signatures of well-known ones, and what a mirror should have given them."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

import notebook_probe as nbp
from notebook_probe.record.format.missing import measured

Points = dict[tuple[str, int], float]
"""Tag and step -> value."""


class WandbLike:
    """``log(data, step=None, commit=None)``; a step below the last is an error here."""

    def __init__(self) -> None:
        self.points: Points = {}
        self.steps: list[int] = []
        self.threads: set[str] = set()

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool = False) -> None:
        assert step is not None
        assert not self.steps or step >= self.steps[-1], "steps must not go back"
        self.steps.append(step)
        self.threads.add(threading.current_thread().name)
        self.points.update({(tag, step): value for tag, value in data.items()})


class SummaryWriterLike:
    """``add_scalar(tag, scalar_value, global_step)``."""

    def __init__(self) -> None:
        self.points: Points = {}

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None:
        assert global_step is not None
        self.points[tag, global_step] = scalar_value


class MlflowLike:
    """``log_metrics(metrics, step=None, run_id=None)``; the active run is that of a thread."""

    def __init__(self) -> None:
        self.points: Points = {}
        self._of_thread = threading.local()

    def start_run(self) -> None:
        self._of_thread.run = self

    @property
    def info(self) -> MlflowLike:
        return self

    run_id = "the run"

    def active_run(self) -> MlflowLike | None:
        return getattr(self._of_thread, "run", None)

    def log_metrics(
        self, metrics: dict[str, float], step: int | None = None, run_id: str | None = None
    ) -> None:
        assert run_id == self.run_id or self.active_run() is self
        assert step is not None
        self.points.update({(tag, step): value for tag, value in metrics.items()})


def recorded(source: nbp.Run | nbp.OpenedRun) -> Points:
    """All numbers of a record, from its own views."""
    points: Points = {}
    for view in source.streams.values():
        for quantity in (one.name for one in view.variables):
            values = view.values(quantity)
            for row, place in np.argwhere(measured(values)).tolist():
                module = view.modules[place]
                tag = quantity if module == "(root)" else f"{module}/{quantity}"
                points[tag, int(view.steps()[row])] = float(values[row, place])
    return points


def same(one: Points, other: Points) -> bool:
    """Equal bit for bit, NaN to NaN."""
    return one.keys() == other.keys() and all(
        other[key] == value or (math.isnan(value) and math.isnan(other[key]))
        for key, value in one.items()
    )
