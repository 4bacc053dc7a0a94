"""Metrics of the user: torchmetrics' objects as they are, and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from torch import Tensor, nn

from notebook_probe.errors import DuplicateNameError
from notebook_probe.train.data.batch import Device
from notebook_probe.train.metrics.averages import Mean, Value, on_host

__all__ = ["OWN_NAMES", "MetricLike", "MetricsLike", "UserMetrics"]

OWN_NAMES = ("loss", "loss_moving", "fn_loss", "fn_loss_moving")
"""Names reported by the trainer itself."""


@runtime_checkable
class Metric(Protocol):
    """Interface of torchmetrics' objects."""

    def update(self, prediction: Any, label: Any, /) -> Any: ...
    def compute(self) -> Any: ...
    def reset(self) -> Any: ...


MetricLike: TypeAlias = "Metric | Callable[[Any, Any], Any]"
MetricsLike: TypeAlias = "Mapping[str, MetricLike] | Iterable[MetricLike]"


class UserMetrics:
    """Named metrics that are updated together.

    Parameters
    ----------
    metrics : mapping of str to metric, or iterable of metrics
        A metric has ``update(prediction, label)``, ``compute()`` and ``reset()``, or is a function
        ``(prediction, label) -> number``, of which the mean is taken. Without a mapping it is
        called by its ``name``, or as its class or function: ``BinaryAccuracy`` is
        ``binary_accuracy``.
    where : str
        Named in errors.

    Raises
    ------
    TypeError
        For what is neither.
    DuplicateNameError
        Two of one name, or one of the trainer's own.
    """

    def __init__(self, metrics: MetricsLike, where: str) -> None:
        named = metrics.items() if isinstance(metrics, Mapping) else _named(metrics, where)
        self._metrics: dict[str, Metric] = {}
        for name, metric in named:
            if name in self._metrics or name in OWN_NAMES:
                taken = "of the trainer's own" if name in OWN_NAMES else "given twice"
                raise DuplicateNameError(
                    f"{where}: the name {name!r} is {taken}; a dict gives metrics names"
                )
            self._metrics[name] = _read(name, metric, where)

    def __len__(self) -> int:
        return len(self._metrics)

    def reset(self) -> None:
        """Forget every batch."""
        for metric in self._metrics.values():
            metric.reset()

    def update(self, prediction: Any, label: Any) -> None:
        """Take one more batch."""
        for metric in self._metrics.values():
            metric.update(prediction, label)

    def values(self) -> dict[str, Value]:
        """Return the present values; a metric with several numbers has an entry for each."""
        found: dict[str, Value | None] = {}
        for name, metric in self._metrics.items():
            value = metric.compute()
            if isinstance(value, Mapping):
                found.update({f"{name}_{key}": _number(inner) for key, inner in value.items()})
            else:
                found[name] = _number(value)
        return {name: value for name, value in found.items() if value is not None}

    def to(self, device: Device) -> None:
        """Move metrics with tensors to the device."""
        for metric in self._metrics.values():
            if isinstance(metric, nn.Module):
                metric.to(device)

    def state_dict(self) -> dict[str, Any]:
        """Return the states of metrics that have one."""
        states = {
            name: getattr(metric, "state_dict", None) for name, metric in self._metrics.items()
        }
        return {name: state() for name, state in states.items() if callable(state)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        for name, metric in self._metrics.items():
            load = getattr(metric, "load_state_dict", None)
            if callable(load) and name in state:
                load(state[name])


class _Averaged:
    """A function of a batch, averaged over batches by their size."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function
        self.reset()

    def update(self, prediction: Any, label: Any) -> None:
        value = self._function(prediction, label)
        weight = len(prediction) if isinstance(prediction, Tensor) and prediction.ndim else 1
        # Integers and truth values, such as of `prediction == label`, have no mean().
        number = on_host(value.float().mean()) if isinstance(value, Tensor) else float(value)
        self._mean.add(number, weight)

    def compute(self) -> float:
        return self._mean.value()

    def reset(self) -> None:
        self._mean = Mean()

    def state_dict(self) -> dict[str, float | int]:
        return self._mean.state_dict()

    def load_state_dict(self, state: dict[str, float | int]) -> None:
        self._mean.load_state_dict(state)


def _read(name: str, metric: Any, where: str) -> Metric:
    if isinstance(metric, Metric) and not isinstance(metric, type):
        persist = getattr(metric, "persistent", None)
        if callable(persist):  # torchmetrics' states are in its state_dict only when asked for
            persist(True)
        return metric
    if callable(metric) and not isinstance(metric, type):
        return _Averaged(metric)
    raise TypeError(
        f"{where}: {name!r} is {metric!r}; allowed: an object with update, compute and reset, such "
        f"as torchmetrics', or a function (prediction, label) -> number"
    )


def _named(metrics: Iterable[Any], where: str) -> list[tuple[str, Any]]:
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise TypeError(f"{where}: {metrics!r}; a list or a dict of metrics is expected")
    return [(_name_of(metric), metric) for metric in metrics]


def _name_of(metric: Any) -> str:
    own = getattr(metric, "name", None)
    if isinstance(own, str):
        return own
    name = getattr(metric, "__name__", type(metric).__name__)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _number(value: Any) -> Value | None:
    """Return the value as a number; None for several numbers, such as a confusion matrix."""
    if isinstance(value, Tensor):
        return on_host(value) if value.numel() == 1 else None
    return float(value)
