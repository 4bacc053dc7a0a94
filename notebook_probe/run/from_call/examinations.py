"""Examinations that were requested: made with the inputs of a call, and kept in the record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from notebook_probe.errors import QuantityError
from notebook_probe.examine.examining import examine
from notebook_probe.examine.findings import Examination, Finding
from notebook_probe.examine.subject import Arguments, Subject
from notebook_probe.probes.observer import Observer
from notebook_probe.record.format.notes import EXAMINATION
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import ExamineModel
from notebook_probe.run.from_call.next_call import AwaitedCall, NextCall

__all__ = ["Examinations"]


class Examinations:
    """Requested examinations of the model, each an event of the record.

    Parameters
    ----------
    probes : ProbeSet
    observer : Observer
    record : RecordWriter
    excuse : callable
        Called with the seconds for which the checks blocked training.
    """

    def __init__(
        self,
        probes: ProbeSet,
        observer: Observer,
        record: RecordWriter,
        excuse: Callable[[float], None],
    ) -> None:
        self._probes, self._observer = probes, observer
        self._record, self._excuse = record, excuse
        self._next = AwaitedCall(observer)

    def apply(self, request: ExamineModel, step: int) -> str:
        """Examine the model with the kept batch, or with the next call; return which, as text.

        Raises
        ------
        QuantityError
            Nothing more is recorded.
        NotApplicableError
            The model cannot be copied.
        """
        if self._record.stopped:
            raise QuantityError(self._record.stopped)
        batch = self._observer.replay.batch
        if batch is not None:
            inputs = Arguments(batch.args, batch.kwargs)
            return self._keep(step, lambda: self._examined(inputs, batch.targets, batch.loss_fn))
        self._next.begin(self._probes.model, step)
        return "the model is examined with the inputs of its next call, after that step"

    def finish(self, step: int) -> bool:
        """Examine the model, once a step has called it; between steps only.

        Return whether a call is still awaited.
        """
        call = self._next.take(step)
        if call is not None:
            self._keep(step, lambda: self._of_call(call))
        return self._next.is_awaited

    def forget(self) -> None:
        """Wait for no call any more."""
        self._next.forget()

    def _of_call(self, call: NextCall) -> Examination:
        """Return what was found with the observed call, or why there is nothing."""
        if call.given is None:
            return _nothing(call.why_none)
        try:
            return self._examined(Arguments(*call.given))
        except Exception as error:  # the training continues, whatever a check meets
            return _nothing(f"{type(error).__name__}: {error}"[:500])

    def _examined(self, inputs: Arguments, targets: Any = None, loss: Any = None) -> Examination:
        optimizers = self._observer.updates.optimizers
        return examine(Subject.of(self._probes.model, optimizers, inputs, targets, loss))

    def _keep(self, step: int, make: Callable[[], Examination]) -> str:
        """Make and keep a report while training waits; return its title."""
        begun = time.perf_counter()
        try:
            report = make()
        finally:
            # Not counted as a cost of watching: it was requested.
            self._excuse(time.perf_counter() - begun)
        if not self._record.stopped:
            self._record.event(step, EXAMINATION, report.title, json.dumps(report.to_dict()))
        return report.title


def _nothing(why: str) -> Examination:
    return Examination((Finding("every check", "unknown", why),))
