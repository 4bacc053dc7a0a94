"""A loop that goes back where a click asks for it, and does what it was asked to from there."""

from __future__ import annotations

import threading

from notebook_probe.errors import CheckpointError, ProbeError
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.run.going_back.way_back import SentBack as Sent
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.ranks import own_rank
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.evaluate_back import evaluate_back
from notebook_probe.train.loop.rewound import Plan, Rewound
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Sent", "SentBack"]


class SentBack(Rewound):
    """Is asked by its run to go back, on the thread that trains and between two steps."""

    restores = "Weights, optimizer, scheduler, random numbers and the order of the data"

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        self._sent: GoBack | None = None
        self._going_back: int | None = None  # the thread that does
        self._running = self._takes_turns = False

    def record_to(self, run: Run, *, metrics: bool | None = None) -> None:
        super().record_to(run, metrics=metrics)
        run.goes_back_by(self)

    def check_back(self, step: int) -> None:
        """Raise a ProbeError that says why the state after ``step`` updates cannot be had."""
        if own_rank()[1] > 1:
            raise ProbeError("of several processes each goes back by loop.rewind, all together")
        if not self._running:
            raise ProbeError("the loop does not run; loop.rewind goes back")
        if self._takes_turns:
            raise ProbeError("it trains in turn with others; afterwards loop.rewind goes back")
        if not 0 <= step <= self.n_updates:
            raise CheckpointError(f"step {step}: the training is at {self.n_updates}")
        self.kept.check_before(step)

    def evaluate_back(self, request: EvaluateAt) -> str:
        """Measure in an earlier state, leaving all as it is; returns what was done, in words."""
        run = self.run
        assert run is not None  # which has asked for it
        return evaluate_back(run, self.kept.before(request.step), request)

    def _run_on(self, data: Dataset, plan: Plan) -> dict[str, Value] | None:
        """Train as planned, over whatever way back is taken."""
        metrics = self._run(data, plan)
        while self._sent is not None:
            request, self._sent = self._sent, None
            self._going_back = threading.get_ident()
            try:
                self._go_back(request)
                data = self._begin(data)
            finally:
                self._going_back = None
            metrics = self._run(data, plan)
        return metrics

    def _go_back(self, request: GoBack) -> None:
        before = self.run
        assert before is not None  # which has asked for it
        options = {**before.options, "rank": None}  # the folder of a rank is the record's
        run = self.rewind(request.step, **options, probes=None)
        assert run is not None
        run.goes_on_alike(before)
        run.begin_as_asked(request)

    def _check_elsewhere(self) -> None:
        if self._going_back not in (None, threading.get_ident()):
            raise RuntimeError("the loop goes back to an earlier step; wait() for it")
