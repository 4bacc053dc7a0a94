"""The columns that probes need, stream by stream: every axis grows once, however many they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from notebook_probe.axis import AxisLike, Image, PerChannel
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.reading.plan import is_of_calls
from notebook_probe.probes.step.probe import Probe
from notebook_probe.record.format.schema import PHASE
from notebook_probe.record.format.source import ALIASES, LIES_BETWEEN, USUAL, Variable

__all__ = ["COUNTS", "StreamColumns", "columns_of"]

COUNTS = {
    "calls": "training calls of the module in the step",
    "eval_calls": "evaluation calls of the module since the last update",
    "accumulations": "times the gradient was added to in the step",
}

StreamOfAxis: TypeAlias = "tuple[str, AxisLike | None]"
"""A stream's name, and the axis of its vectors; of images there is one by variable and place."""


@dataclass(slots=True)
class StreamColumns:
    """Required columns of one stream, in the order in which they are first named."""

    long_name: str
    modules: dict[str, None] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


def columns_of(probes: Iterable[Probe]) -> dict[StreamOfAxis, StreamColumns]:
    """Return the columns of probes, and of counts recorded along with them."""
    found: dict[StreamOfAxis, StreamColumns] = {}
    for probe in probes:
        axis, place = probe.quantity.axis, standard_place(probe.place)
        columns = _of(found, probe, axis)
        if probe.variable not in columns.variables:
            columns.variables[probe.variable] = _variable(probe)
        if not isinstance(axis, PerChannel | Image):  # known by the first value
            columns.modules[place] = None
        if is_of_calls(probe) or probe.accumulations:
            beside = _of(found, probe, None)
            beside.modules[place] = None
            beside.variables.setdefault(
                probe.count, Variable(probe.count, "1", COUNTS[probe.count])
            )
    return found


def _of(
    found: dict[StreamOfAxis, StreamColumns], probe: Probe, axis: AxisLike | None
) -> StreamColumns:
    key = probe.stream, axis
    if key not in found:
        found[key] = StreamColumns(str(probe.schedule))
    return found[key]


def _variable(probe: Probe) -> Variable:
    quantity = probe.quantity
    attrs = {"needs": ", ".join(quantity.needs), "source": quantity.source}
    if quantity.aliases:
        attrs[ALIASES] = ", ".join(map(probe.called, quantity.aliases))
    if quantity.usual is not None:
        attrs[USUAL] = repr(quantity.usual)
    if quantity.bounds is not None:
        attrs[LIES_BETWEEN] = " ".join(map(repr, quantity.bounds))
    if probe.phase != "training":
        attrs[PHASE] = "evaluation"
    return Variable(probe.variable, quantity.units, quantity.summary, attrs)
