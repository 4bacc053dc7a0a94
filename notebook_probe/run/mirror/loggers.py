"""The loggers that rows can be handed to, known by what they can do and not by their classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
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


_FORMS: Mapping[str, tuple[Callable[[Any], Logger], tuple[Any, ...], dict[str, int], str]] = {
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
"""By the method that is called: who calls it, what it is called with, and that in words."""


def read_logger(
    logger: object, methods: Sequence[str] = tuple(_FORMS), asked_by: str = "mirror"
) -> Logger:
    """Whoever hands numbers to ``logger``.

    Parameters
    ----------
    methods : sequence of str
        Those that may be called.
    asked_by : str
        What the user has called.

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
    """Whether it can be called so; not every ``log`` can, those of math and logging for two."""
    try:
        inspect.signature(method).bind(*arguments, **keywords)
    except (TypeError, ValueError):  # none, of another kind, or one that does not tell
        return False
    return True
