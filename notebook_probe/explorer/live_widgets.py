"""A user's own widgets, answered while a cell blocks the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from ipywidgets import Widget

from notebook_probe.errors import ParamError
from notebook_probe.explorer.kernel import KernelRoute, kernel_route
from notebook_probe.reports import report

__all__ = ["live"]

AnyWidget = TypeVar("AnyWidget", bound=Widget)
"""The class of a given widget, which is also what is returned."""


def live(widget: AnyWidget) -> AnyWidget:
    """Answer an ipywidgets widget while a cell runs, as the panel is, and return it.

    Its messages otherwise wait until the running cell ends, in most notebooks. The widgets inside
    it are answered as well, such as the sliders of a box; call it again after adding some. In a
    script it does nothing.

    Callbacks run in another thread than the cell, or between two of its steps. They may read from
    a run, and change a training by requests, such as `Run.set`, which act between two steps. Do
    not set traits of the same widget in the running cell: two threads in ipywidgets lose updates.

    In a kernel without subshells (ipykernel 6, marimo), messages are read between two steps of a
    run whose panel is shown.

    Parameters
    ----------
    widget : ipywidgets.Widget
        A slider, a button, a box, ...

    Returns
    -------
    ipywidgets.Widget
        The same.

    Raises
    ------
    ParamError
        It is no widget, or it has been closed.

    Examples
    --------
    >>> rate = ipywidgets.FloatLogSlider(0.05, min=-4, max=0, description="lr")  # doctest: +SKIP
    >>> rate.observe(lambda change: run.set("lr", change.new), "value")          # doctest: +SKIP
    >>> nbp.live(rate)                                                           # doctest: +SKIP
    """
    if not isinstance(widget, Widget):
        kind = type(widget).__name__
        raise ParamError(f"live({widget!r}): this is a {kind}; allowed is a widget of ipywidgets")
    if widget.comm is None:
        raise ParamError(f"live({widget!r}): the widget is closed; make a new one")
    route = kernel_route()
    if route.name == "after the cell":
        report("this notebook answers widgets only after the running cell, live or not")
    for one in _within(widget):
        _carry(one, route)
    return widget


def _within(widget: Widget) -> Iterator[Widget]:
    """Yield the widget and all that its traits refer to, each once."""
    found, waiting = set[str](), [widget]
    while waiting:
        one = waiting.pop()
        if one.comm is not None and one.model_id not in found:
            found.add(one.model_id)
            yield one
            for name in one.keys:
                waiting.extend(_widgets_in(getattr(one, name)))


def _widgets_in(value: Any) -> Iterator[Widget]:
    if isinstance(value, Widget):
        yield value
    elif isinstance(value, Mapping):
        yield from _widgets_in([*value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _widgets_in(one)


def _carry(widget: Widget, route: KernelRoute) -> None:
    """Answer the messages of one widget until it is closed."""
    route.carry(widget.comm)
    widget.observe(partial(_closes, route), "comm")


def _closes(route: KernelRoute, change: Any) -> None:
    if change.old is not None:
        route.forget(change.old)
