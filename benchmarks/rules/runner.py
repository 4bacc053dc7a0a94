"""Trains a case while it is watched, and keeps what the rules said and how the training went."""

from __future__ import annotations

import io
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

import notebook_probe as nbp
from benchmarks.rules.recipe import Case
from benchmarks.rules.training import Training
from notebook_probe.alerts.listing import Alerts

__all__ = ["Outcome", "Said", "Watching", "trained"]


@dataclass(frozen=True)
class Watching:
    """What is measured, and whether the default budget may measure less often."""

    probes: tuple[str, ...]
    has_budget: bool

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `watch`."""
        budget = {} if self.has_budget else {"budget": None}
        return {"probes": [*self.probes], **budget}


@dataclass(frozen=True, order=True)
class Said:
    """An alert, as far as the benchmark looks at it."""

    step: int
    rule: str
    module: str


@dataclass(frozen=True)
class Outcome:
    """What a training came to.

    Attributes
    ----------
    said, remarked : tuple of Said
        Alerts, and remarks: findings that may be intended.
    improved : float
        Its error at the end, as part of that at the beginning.
    is_healthy : bool
        Whether that is as low as its recipe states.
    harm : float
        What the cause makes larger; infinite of numbers that are none.
    seconds : float
        CPU time.
    """

    said: tuple[Said, ...]
    remarked: tuple[Said, ...]
    improved: float
    is_healthy: bool
    harm: float
    seconds: float


def trained(case: Case, watching: Watching) -> Outcome:
    """Train it on one thread, each of its models watched by a run of its own."""
    torch.set_num_threads(1)
    begun = time.process_time()
    training = case.build()
    error = [] if training.error is None else [training.error()]
    with tempfile.TemporaryDirectory() as folder:
        losses, said, remarked = _steps(training, watching, Path(folder))
    error += _ends(losses) if training.error is None else [training.error()]
    improved = error[1] / error[0] if error[0] else math.nan
    return Outcome(
        said,
        remarked,
        improved,
        improved < training.factor,
        _harm(training, losses[case.recipe.cause.step :]),
        time.process_time() - begun,
    )


def _steps(
    training: Training, watching: Watching, folder: Path
) -> tuple[list[float], tuple[Said, ...], tuple[Said, ...]]:
    """The loss of the first model at each step, and the alerts and remarks of all of them."""
    losses = []
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(io.StringIO()))  # where each run is recorded
        runs = [
            stack.enter_context(
                nbp.watch(*watched, folder / f"{i}.zarr", name=f"{i}", **watching.options)
            )
            for i, watched in enumerate(training.watched)
        ]
        found = runs[0].batches(training.batches) if training.logs else training.batches
        for i, batch in zip(range(training.n_steps), found, strict=False):
            told = training.step(i, batch)
            losses.append(told[0])
            if training.logs:
                for run, loss in zip(runs, told, strict=True):
                    run.log(loss=loss)
                parts: dict[str, Any] = dict(zip(training.parts, told, strict=False))
                runs[0].log(**parts)
    return losses, _sorted(run.alerts for run in runs), _sorted(run.remarks for run in runs)


def _sorted(found: Iterable[Alerts]) -> tuple[Said, ...]:
    return tuple(sorted(Said(a.step, a.rule, a.module) for some in found for a in some))


def _ends(losses: Sequence[float]) -> list[float]:
    n = len(losses) // 10
    return [fmean(losses[:n]), fmean(losses[-n:])]


def _harm(training: Training, since: Sequence[float]) -> float:
    harm = fmean(since) if training.harm is None else training.harm()
    return harm if math.isfinite(harm) else math.inf
