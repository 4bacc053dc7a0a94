"""Supported loggers, recognized by their methods, not by their classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

__all__ = ["StepLogger", "read_logger"]

_ODD = re.compile(r"[^\w\-./: ]", re.ASCII)
"""Characters that MLflow forbids in names: it would refuse the whole step."""


class StepLogger(Protocol):
    """Receiver of a step's numbers, by tag."""

    grows: ClassVar[bool]
    """True if it refuses steps below the last."""

    def put(self, step: int, values: dict[str, float]) -> None:
        """Send the numbers; raises whatever the logger raises."""


class _Log:
    """W&B, trackio: ``log(values, step=)``."""

    grows: ClassVar[bool] = True

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def put(self, step: int, values: dict[str, float]) -> None:
        self._logger.log(values, step=step)


class _AddScalar:
    """TensorBoard: ``add_scalar(tag, value, step)``."""

    grows: ClassVar[bool] = False

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def put(self, step: int, values: dict[str, float]) -> None:
        for tag, value in values.items():
            self._logger.add_scalar(tag, value, step)


class _LogMetrics:
    """MLflow, and the loggers of Lightning: ``log_metrics(values, step=)``."""

    grows: ClassVar[bool] = False

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._run = _active_run(logger)

    def put(self, step: int, values: dict[str, float]) -> None:
        named = {_ODD.sub("_", tag): value for tag, value in values.items()}
        self._logger.log_metrics(named, step=step, **self._run)


def _active_run(logger: Any) -> Mapping[str, str]:
    """Return the logger's active run, if it is bound to this thread, for use by another one."""
    active_run = getattr(logger, "active_run", None)
    if not callable(active_run):
        return {}
    run = active_run()
    if run is None:
        raise ValueError("mirror(mlflow): it has no active run; call mlflow.start_run() before")
    return {"run_id": run.info.run_id}


_FORMS: Mapping[str, tuple[Callable[[Any], StepLogger], tuple[Any, ...], dict[str, int], str]] = {
    "log": (_Log, ({},), {"step": 0}, "log(values, step=), as W&B's run after wandb.init()"),
    "add_scalar": (
        _AddScalar,
        ("", 0.0, 0),
        {},
        "add_scalar(tag, value, step), as TensorBoard's SummaryWriter",
    ),
    "log_metrics": (
        _LogMetrics,
        ({},),
        {"step": 0},
        "log_metrics(values, step=), as the module mlflow",
    ),
}
"""Adapter, arguments and description by the name of the method."""


def read_logger(
    logger: object, methods: Sequence[str] = tuple(_FORMS), asked_by: str = "mirror"
) -> StepLogger:
    """Return the adapter that sends numbers to ``logger``.

    Parameters
    ----------
    methods : sequence of str
        Methods that may be called.
    asked_by : str
        Name of the user's call.

    Raises
    ------
    TypeError
        For an object that cannot take them.
    ValueError
        For one that has no run to take them.
    """
    for method in methods:
        form, arguments, keywords, _ = _FORMS[method]
        if _takes(getattr(logger, method, None), arguments, keywords):
            return form(logger)
    known = " or ".join(_FORMS[method][-1] for method in methods)
    raise TypeError(f"{asked_by}({logger!r})"[:200] + f": it has none of {known}")


def _takes(method: Any, arguments: tuple[Any, ...], keywords: Mapping[str, int]) -> bool:
    """Return whether it has this signature; ``log`` of math and logging, for example, has not."""
    try:
        inspect.signature(method).bind(*arguments, **keywords)
    except (TypeError, ValueError):  # none, of another kind, or one that does not tell
        return False
    return True
