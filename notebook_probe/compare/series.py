"""One series of a run, every row of it, optionally smoothed."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Floats, Source, Steps
from notebook_probe.record.views.thinning.average import capped
from notebook_probe.record.views.thinning.averages import average_between, holding
from notebook_probe.record.views.thinning.merged_rows import merged_rows

__all__ = ["check_recorded", "read_smoothed"]


def check_recorded(sources: Iterable[Source], quantity: str, module: str | None = None) -> None:
    """Refuse a quantity, or a module of it, that none of these runs has.

    Raises
    ------
    UnknownNameError
        ``no quantity 'wieght_norm' is recorded; close: 'weight_norm'``.
    """
    names: dict[str, None] = {}
    modules: dict[str, None] = {}
    for source in sources:
        own = source.recorded_name(quantity)
        for stream in source.streams.values():
            found = [one.name for one in stream.variables]
            names.update(dict.fromkeys(found))
            modules.update(dict.fromkeys(stream.modules if own in found else ()))
    if not modules:
        raise UnknownNameError(f"no quantity {quantity!r} is recorded; {near(quantity, names)}")
    if module is not None and module_label(module) not in modules:
        raise UnknownNameError(
            f"no {quantity} of module {module!r} is recorded; {near(module, modules)}"
        )


def read_smoothed(
    source: Source, module: str, quantity: str, smooth: float = 0.0, *, log: bool = False
) -> tuple[Steps, Floats]:
    """Return measured steps and values (row,), or their averages; NaN if not finite.

    Raises
    ------
    UnknownNameError
        ``loss of (root) is not recorded in digits-cnn-5``.
    """
    module, quantity = module_label(module), source.recorded_name(quantity)
    held = holding(source.streams, module, quantity)
    if not held:
        raise UnknownNameError(f"{quantity} of {module} is not recorded in {source.name}")
    weight = capped(smooth, sum(stream.n_rows for stream in held.values()))
    if weight > 0:
        return average_between(source.streams, module, quantity, None, weight, log=log)
    parts = [(stream, 0, stream.n_rows) for stream in held.values()]
    steps, values = merged_rows(parts, quantity, [module])
    known = measured(values[:, 0])
    return steps[known], values[known, 0]
