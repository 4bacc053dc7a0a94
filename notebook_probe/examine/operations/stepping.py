"""One logged step of a model: forward, loss, backward, on a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from notebook_probe.errors import NotApplicableError
from notebook_probe.examine.operations.log import LoggedOperation, OperationLog
from notebook_probe.examine.subject import Subject
from notebook_probe.probes.replay.isolation import untouched
from notebook_probe.probes.step.containers import copied

__all__ = ["logged_step"]


def logged_step(subject: Subject) -> Sequence[LoggedOperation]:
    """Return every operation of one step in training mode, with fixed random numbers.

    Raises
    ------
    NotApplicableError
        No loss is known.
    Exception
        Any error of the model or the loss.
    """
    model = subject.model
    tensors = [*model.parameters(), *model.buffers(), *subject.inputs.tensors]
    log = OperationLog(model)
    with _without_onednn(), untouched([model], {one.device for one in tensors}):
        for one in model.parameters():
            one.grad = None
        torch.manual_seed(0)
        model.train()
        trained = [one for one in model.parameters() if one.requires_grad]
        args, kwargs = copied(subject.inputs.args), copied(dict(subject.inputs.kwargs))
        with log.logging():
            output = model(*args, **kwargs)
            loss = subject.loss_of(output)
            if loss is None:
                raise NotApplicableError(
                    "first_difference(): no loss is known; give loss=... and targets, or a model "
                    "whose output has a loss"
                )
            log.is_backward = True
            if loss.requires_grad and trained:
                loss.backward(inputs=trained)  # not into what else the loss is made of
    return log.operations


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Compute without oneDNN, whose recurrent layers return memory that nothing has written."""
    # Not by torch.backends.mkldnn.flags, which warns where there is no Intel GPU.
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)
