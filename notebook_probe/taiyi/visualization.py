"""Taiyi's Visualization: what is due at a step, sent to something that logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import xarray as xr

from notebook_probe.run.mirror.loggers import read_logger
from notebook_probe.taiyi.monitor import Monitor

__all__ = ["MonitorLogger", "Visualization"]


class MonitorLogger(Protocol):
    """Interface of W&B and similar loggers."""

    def log(self, values: dict[str, Any], /, *, step: int = ...) -> Any:
        """Keep some values of a step."""


class Visualization:
    """Send a monitor's measurements to a logger, as Taiyi's Visualization does.

    Parameters
    ----------
    monitor : Monitor
    logger : object
        Has ``log(dict, step=)``, such as ``wandb`` or a W&B run; its ``finish`` is called if it
        has one.

    Raises
    ------
    TypeError
        A logger that cannot be called so.

    Examples
    --------
    >>> vis = Visualization(monitor, wandb)  # doctest: +SKIP
    >>> vis.show(step)  # doctest: +SKIP
    """

    def __init__(self, monitor: Monitor, logger: MonitorLogger) -> None:
        self._taker = read_logger(logger, ["log"], "Visualization")
        self.monitor, self.vis = monitor, logger
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._last: int | None = None

    def show(self, step: int, ext: Mapping[str, Any] | None = None) -> None:
        """Send each due quantity that has a value, as ``<module>_<quantity>``, and ``ext`` with it.

        A number goes as a number, a vector as a picture of its history. A step is sent once its
        update has happened, when its values are known: called before the optimizer's step, with
        the next call, or by `close`.
        """
        self._waiting.append((step, dict(ext or {})))
        self._send_known()

    def log_ext(self, ext: Mapping[str, Any] | None = None) -> None:
        """Send values of your own, at the step that was shown last."""
        if self._waiting and not self.monitor.is_over(self._waiting[-1][0]):
            self._waiting[-1][1].update(ext or {})  # a logger takes no step after a later one
            return
        self._send_known()
        self._send(self._last, dict(ext or {}))

    def close(self) -> None:
        """Send the waiting values, and end the logger."""
        waiting, self._waiting = self._waiting, []
        for step, ext in waiting:
            self._show(step, ext)
        finish = getattr(self.vis, "finish", None)
        if callable(finish):
            finish()

    def _send_known(self) -> None:
        while self._waiting and self.monitor.is_over(self._waiting[0][0]):
            self._show(*self._waiting.pop(0))

    def _show(self, step: int, ext: dict[str, Any]) -> None:
        self._last = step
        shown = self.monitor.shown(step)
        values = {f"{one.module}_{one.name}": _drawn(value) for one, value in shown.items()}
        known = {name: value for name, value in values.items() if value is not None}
        self._send(step, known | ext)

    def _send(self, step: int | None, values: dict[str, Any]) -> None:
        if values and step is None:  # none was shown: at the logger's own
            self.vis.log(values)
        elif values and step is not None:
            self._taker.put(step, values)


def _drawn(value: Any) -> Any:
    """Return a number itself, or a picture of a vector's history; None if it is empty."""
    if not isinstance(value, xr.DataArray):
        return value
    if value.shape[1] == 1:
        return float(value[-1, 0])
    if not np.isfinite(value.values).any():
        return None
    from notebook_probe.figures import vector  # matplotlib is not needed for numbers

    return vector(value)
