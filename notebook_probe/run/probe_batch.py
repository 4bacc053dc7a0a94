"""The batch on which a run may run its model once more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.gate import Gate

__all__ = ["Probing"]


class Probing(ABC):
    """The part of a run that keeps a probe batch."""

    _writer: RecordWriter
    _observer: Observer
    _gate: Gate

    @abstractmethod
    def _check_open(self) -> None: ...

    def probe_batch(self, inputs: Any, targets: Any, loss_fn: Callable[[Any, Any], Tensor]) -> None:
        """Keep a batch, on which quantities such as ``sharpness`` run the model once more.

        They do so as a due step begins, of the weights with which it begins, with the model in
        evaluation mode and without autocast. Parameters, gradients, buffers, modes and random
        generators are left as they were, bit for bit; nothing else of any run counts these calls.
        Your own hooks and ``loss_fn`` are called as in any call of the model. A new batch replaces
        the old one, and is the new reference of what is compared with the first due step.

        Parameters
        ----------
        inputs : Tensor, tuple or mapping
            What the model is called with: a tuple is its arguments, a mapping its keywords.
        targets : anything
            Handed to ``loss_fn``; copies are kept of both.
        loss_fn : callable
            ``loss_fn(outputs, targets)``, the mean loss as one real number.

        Raises
        ------
        QuantityError
            ``loss_fn`` is no function, or does not return one real number.
        NotApplicableError
            The parameters are split over processes.
        UnreadableError
            The model has lazy parameters and was never called.
        ClosedRunError
        Exception
            Whatever the model or ``loss_fn`` raises: both are tried at once, unless another thread
            trains the model.

        Examples
        --------
        >>> run.probe_batch(images, labels, nn.functional.cross_entropy)  # doctest: +SKIP
        >>> run.attach("", "sharpness", "every(100)")  # doctest: +SKIP
        >>> run.attach("layer*", "cka_to_reference", "every(100)")  # doctest: +SKIP
        """
        self._check_open()
        batch = ProbeBatch.of(inputs, targets, loss_fn)
        keep = partial(_keep, batch, self._observer, self._writer)
        if not self._gate.is_elsewhere:
            self._observer.replay.try_out(batch)
            self._observer.settle()
            if self._observer.frame is None:
                keep()
                return
        self._gate.once(keep)


def _keep(batch: ProbeBatch, observer: Observer, writer: RecordWriter) -> None:
    observer.keep_batch(batch)
    writer.event(observer.clock.upcoming, "probe_batch", str(batch))
