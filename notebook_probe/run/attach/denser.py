"""A preset on a chosen schedule, for some steps or permanently."""

from __future__ import annotations

from functools import partial

from notebook_probe.model.map import ModelMap
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.rescheduled import Rescheduled
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.schedules import between, schedule

__all__ = ["denser"]


def denser(request: GoBack, model_map: ModelMap) -> Attachment | None:
    """Return the additional attachment that a branch requests; None if there is none.

    Raises
    ------
    UnknownNameError, ScheduleError, NotApplicableError
        Before anything is attached.
    """
    if not request.preset:
        return None
    due = schedule(request.schedule)
    if request.until is not None:
        due = due & between(request.step, request.until)
    resolver = partial(resolve_presets, probes=request.preset)
    names = {probe.quantity.name for probe in resolver(model_map).probes}
    return Attachment.resolved(Rescheduled(resolver, names, None, due), model_map)
