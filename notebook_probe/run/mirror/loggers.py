"""The loggers that rows can be handed to, known by what they can do and not by their classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

__all__ = ["Logger", "read_logger"]

_ODD = re.compile(r"[^\w\-./: ]", re.ASCII)
"""What MLflow's names cannot have: of a name with it the whole step would be refused."""


class Logger(Protocol):
    """Takes the numbers of a step, by tag."""

    grows: ClassVar[bool]
    """It takes no step below the last."""

    def put(self, step: int, values: dict[str, float]) -> None:
        """Hand them over; raises whatever the logger raises."""


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
    """The run to name from another thread, where the logger's active one is this thread's own."""
    active_run = getattr(logger, "active_run", None)
    if not callable(active_run):
        return {}
    run = active_run()
    if run is None:
        raise ValueError("mirror(mlflow): it has no active run; call mlflow.start_run() before")
    return {"run_id": run.info.run_id}


_FORMS: Mapping[str, tuple[Callable[[Any], Logger], tuple[Any, ...], dict[str, int]]] = {
    "log": (_Log, ({},), {"step": 0}),
    "add_scalar": (_AddScalar, ("", 0.0, 0), {}),
    "log_metrics": (_LogMetrics, ({},), {"step": 0}),
}
"""By the method that is called: who calls it, and what it is called with."""


def read_logger(logger: object) -> Logger:
    """Whoever hands numbers to ``logger``.

    Raises
    ------
    TypeError
        For an object that cannot take them.
    ValueError
        For one that has no run to take them.
    """
    for method, (form, arguments, keywords) in _FORMS.items():
        if _takes(getattr(logger, method, None), arguments, keywords):
            return form(logger)
    raise TypeError(
        f"mirror({logger!r})"[:200] + ": it has none of log(values, step=), as W&B's run after "
        "wandb.init(), add_scalar(tag, value, step), as TensorBoard's SummaryWriter, and "
        "log_metrics(values, step=), as the module mlflow"
    )


def _takes(method: Any, arguments: tuple[Any, ...], keywords: Mapping[str, int]) -> bool:
    """Whether it can be called so; not every ``log`` can, those of math and logging for two."""
    try:
        inspect.signature(method).bind(*arguments, **keywords)
    except (TypeError, ValueError):  # none, of another kind, or one that does not tell
        return False
    return True
